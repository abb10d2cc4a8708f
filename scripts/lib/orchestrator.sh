# shellcheck shell=bash
# What the drivers of several runs share. Needs console.sh and env.sh. Sourced, never run.
#
# A driver holds nothing that the run directories do not: killed and started again it goes on, since
# a run that is whole is skipped and any other resumed. Nodes of its earlier life help it.

dry_run=() words=() submit_options=() incomplete=() headed=
# VARIABLE=VALUE: what a driver sets for one run alone.
variables=()

# orchestrator::arguments FILE MINIMUM WORD... [-- OPTION...]: sets dry_run, words, submit_options.
orchestrator::arguments() {
  local file="$1" minimum="$2"
  shift 2
  while (($#)) && [[ "$1" != -- ]]; do
    case "$1" in
    -h | --help) usage "$file" && exit ;;
    --dry-run) dry_run=(--dry-run) ;;
    -*) die "${file##*/} $1" "no such option" "options of rollpool submit stand after --" ;;
    *) words+=("$1") ;;
    esac
    shift
  done
  submit_options=("${@:2}")
  # A dry run of each submission, wherever it is asked for, is one of the whole driver.
  [[ " ${submit_options[*]} " != *" --dry-run "* ]] || dry_run=(--dry-run)
  ((${#words[@]} >= minimum)) || die "${file##*/}" "too few arguments" "see --help"
}

# orchestrator::variables VARIABLE=VALUE,...: sets variables. A comma that no further VARIABLE= follows
# is one of the value.
orchestrator::variables() {
  local rest="$1"
  variables=()
  while [[ "$rest" =~ ^(.*),([A-Z][A-Z0-9_]*=.*)$ ]]; do # the last one first
    rest="${BASH_REMATCH[1]}"
    variables=("${BASH_REMATCH[2]}" "${variables[@]}")
  done
  variables=("$rest" "${variables[@]}")
}

# orchestrator::prepare RUN OPTION...: seal its episodes.
orchestrator::prepare() {
  ((${#dry_run[@]})) || env "${variables[@]}" rollpool prepare "$@"
}

# orchestrator::evaluate RUN OPTION...: the pool works on a run until it is whole or no node is left.
orchestrator::evaluate() {
  local run="$1"
  shift
  say "== $run"
  env "${variables[@]}" rollpool submit "$run" "${submit_options[@]}" "$@" "${dry_run[@]}" && return
  incomplete+=("$run")
}

# orchestrator::rates RUN MODEL: one line of success rates, below a heading the first time; the tables
# are in runs/MODEL.
orchestrator::rates() {
  local tables heading
  ((${#dry_run[@]} == 0)) || return 0
  tables="$(python "$EVAL_ROOT/organize_results.py" "$1" "$2")" || incomplete+=("$1")
  # The last table is that of all scenes: scene, tasks, then the rates.
  heading="$(sed -n 's/^scene  *tasks//p' <<<"$tables" | tail -n 1)"
  [[ -n "$headed" ]] || printf '%-24s%s\n' run "$heading"
  headed=1
  printf '%-24s%s\n' "$1" "$(sed -n 's/^TOTAL  *[0-9][0-9]*//p' <<<"$tables" | tail -n 1)"
}

# orchestrator::end: exit code 1 where a run is incomplete.
orchestrator::end() {
  ((${#incomplete[@]})) || return 0
  say "incomplete: $(printf '%s\n' "${incomplete[@]}" | sort -u | xargs); run this again to go on"
  return 1
}
