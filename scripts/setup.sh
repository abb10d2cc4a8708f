#!/usr/bin/env bash
# Set up what rollpool needs on this machine; what is there already stays.
#
#   bash scripts/setup.sh [--with-tests] [NAME...]
#
# NAME is one of
#   system    a Vulkan driver for cameras without a GPU (Debian, as root; comes with tabletop)
#   toolkit   the toolkit's own Python environment: worker, organizer, command line, checks
#   tabletop  the environment of the built-in benchmark (SAPIEN)
#   model     the environment of the built-in policies (torch)
#   sapien_b1 SAPIEN 3.0.0b1, for DXVLA_SAPIEN_B1=1 to put into a node's simulator environment
#   slurm     SLURM itself, for the tests that start a cluster (Debian, as root)
#   nfs       an NFS server, small Linux machines and FUSE, for the tests on such mounts (the same)
# and by default toolkit, tabletop and model. --with-tests adds the test tools to tabletop and model.
#
# Environments go to ${ROLLPOOL_ENVS:-envs}/NAME, from the exact pins of requirements/NAME.txt. One
# that is interrupted or whose pins or Python changed is built again from nothing. A ROBOTWIN_PY or
# XVLA_PY of your own is used as it is, and tabletop or model is then not built.
#   ROLLPOOL_PYTHON  the Python to build from (default: the first of python3.11, 3.12, 3.10, 3.13)
#   ROLLPOOL_TORCH   what to install as torch: another requirement, or a wheel's path
# pip's own settings (pip.conf, PIP_INDEX_URL, PIP_FIND_LINKS) are honoured.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
for part in "$EVAL_ROOT"/scripts/lib/{console,python,system,environment}.sh; do
  # shellcheck source=/dev/null
  . "$part"
done

# lock: one set-up of these environments at a time. The lock is on this machine's own disk, since
# ROLLPOOL_ENVS may be on a network file system; two machines must not set up the same folder at once.
lock() {
  local file
  file="${TMPDIR:-/tmp}/rollpool-setup-$EUID-$(printf '%s' "$ROLLPOOL_ENVS" | sha256sum | cut -c 1-12).lock"
  exec 9>"$file"
  flock -n 9 && return
  say "another set-up is at work here: waiting for it"
  flock -w 3600 9 || die "the set-up lock $file" "still taken after an hour" "see who holds it"
}

# step PYTHON NAME WITH_TESTS
step() {
  local python="$1" name="$2" with_tests="$3" own
  if [[ "$name" == system ]]; then
    system::ensure_vulkan "$python"
    return
  fi
  if [[ "$name" == slurm ]]; then
    system::ensure_slurm
    return
  fi
  if [[ "$name" == nfs ]]; then
    system::ensure_nfs
    return
  fi
  if [[ "$name" == sapien_b1 ]]; then
    environment::ensure_sapien_b1
    return
  fi
  own="$(environment::own "$name")"
  if [[ -n "$own" ]]; then
    say "your own $own is used as it is"
    return
  fi
  environment::ensure "$python" "$name"
  [[ "$with_tests" == 0 ]] || environment::ensure_tests "$python" "$name"
}

main() {
  local python names=() with_tests=0 name started number=0
  while (($#)); do
    case "$1" in
    -h | --help) usage "${BASH_SOURCE[0]}" && return ;;
    --with-tests) with_tests=1 ;;
    system | toolkit | tabletop | model | sapien_b1 | slurm | nfs) names+=("$1") ;;
    *) die "setup.sh $1" "no such environment or option" "see setup.sh --help" ;;
    esac
    shift
  done
  [[ ${#names[@]} -gt 0 ]] || names=(toolkit tabletop model)
  [[ " ${names[*]} " != *" tabletop "* ]] || names=(system "${names[@]}")

  mkdir -p "$ROLLPOOL_ENVS"
  lock
  if ! python="$(python::choose)"; then
    [[ -z "${ROLLPOOL_PYTHON:-}" ]] || return 2
    system::ensure_python
    python="$(python::choose)"
  fi
  for name in "${names[@]}"; do
    number=$((number + 1)) started=$SECONDS
    printf '[%d/%d] %s: ' "$number" "${#names[@]}" "$name"
    step "$python" "$name" "$with_tests"
    ((SECONDS == started)) || say "  ready after $((SECONDS - started)) s"
  done
}

main "$@"
