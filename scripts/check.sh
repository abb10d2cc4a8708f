#!/usr/bin/env bash
# Check the code without running it: ruff (lint and format), mypy, shellcheck, shfmt.
#
#   bash scripts/check.sh [--fix]
#
# Looks at every file that git knows. All checks run; the exit code is 1 if any of them complained.
# --fix lets ruff and shfmt rewrite what they can first.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"

complaints=()

# check TITLE COMMAND...
check() {
  local title="$1" started=$SECONDS
  shift
  say "== $title"
  if "$@"; then
    say "   ok ($((SECONDS - started)) s)"
  else
    complaints+=("$title")
  fi
}

# shell_files: every shell script that git knows, by its name or by its first line.
shell_files() {
  local file
  git ls-files | while IFS= read -r file; do
    if [[ "$file" == *.sh ]]; then
      printf '%s\n' "$file"
    elif [[ -f "$file" && "${file##*/}" != *.* ]] && head -n 1 "$file" | grep -Eq '^#!.*\b(ba)?sh$'; then
      printf '%s\n' "$file"
    fi
  done
}

main() {
  local fix=0 pythons typed shells
  case "${1:-}" in
  -h | --help) usage "${BASH_SOURCE[0]}" && return ;;
  --fix) fix=1 ;;
  '') ;;
  *) die "check.sh $1" "no such option" "see check.sh --help" ;;
  esac
  cd "$EVAL_ROOT"
  bash scripts/setup.sh toolkit
  PATH="$ROLLPOOL_ENVS/toolkit/bin:$PATH"
  mapfile -t pythons < <(git ls-files '*.py')
  mapfile -t typed < <(git ls-files '*.py' ':!tests')
  mapfile -t shells < <(shell_files)
  if ((fix)); then
    ruff check -q --fix "${pythons[@]}" || true
    ruff format -q "${pythons[@]}"
    shfmt -w -i 2 "${shells[@]}"
  fi
  check "ruff check (${#pythons[@]} files)" ruff check -q "${pythons[@]}"
  check "ruff format" ruff format -q --diff "${pythons[@]}"
  check "mypy (${#typed[@]} files)" mypy --no-error-summary "${typed[@]}"
  check "shellcheck (${#shells[@]} files)" shellcheck "${shells[@]}"
  check "shfmt" shfmt -d -i 2 "${shells[@]}"
  if ((${#complaints[@]})); then
    say "complaints from: ${complaints[*]}"
    return 1
  fi
  say "all checks passed"
}

main "$@"
