#!/usr/bin/env bash
# Evaluate the learned policy that ships with rollpool, and the expert, on the built-in benchmark.
#
#   bash scripts/demo.sh [--workers N]
#
# Sets up what is missing, evaluates each of the two in a run of its own (runs/demo_tinyvla and
# runs/demo_expert), and prints their success tables and where the videos are. Run it again to
# resume: episodes that have a result are not repeated.
#   --workers N    lease workers at a time (default: one per two cores, at least 2)
#   EVAL_TEST_NUM  episodes per task (default: 2)
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"

readonly RUNS="${RUNS_ROOT:-$EVAL_ROOT/runs}"
declare -A incomplete=()

# evaluate POLICY WORKERS: one run, from its queue to its tables, which go beside the run's own files.
evaluate() {
  local policy="$1" workers="$2" run="demo_$1" started=$SECONDS
  if [[ -d "$RUNS/$run/eval_result" ]]; then
    say "== $run is there already: resuming it, only episodes without a result are run"
  else
    say "== $run: evaluating $policy"
  fi
  tolerate_partial "$run" rollpool run "$run" --workers "$workers" \
    --profile demo --policy "$policy" --queue "$RUNS/demo_queue.txt"
  tolerate_partial "$run" python "$EVAL_ROOT/organize_results.py" "$run" "$run"
  say "== $run took $((SECONDS - started)) s"
}

# tolerate_partial RUN COMMAND...: exit code 1 says that episodes are missing; the rest goes on.
tolerate_partial() {
  local run="$1" code=0
  shift
  "$@" || code=$?
  if ((code == 1)); then
    incomplete[$run]=1
  elif ((code)); then
    exit "$code"
  fi
}

main() {
  local cores workers policy setup_s
  cores="$(nproc)"
  workers=$((cores < 4 ? 2 : cores / 2))
  case "${1:-}" in
  -h | --help) usage "${BASH_SOURCE[0]}" && return ;;
  --workers) workers="$(number --workers "${2:-}")" ;;
  '') ;;
  *) die "demo.sh $1" "no such option" "see demo.sh --help" ;;
  esac

  bash "$EVAL_ROOT/scripts/setup.sh"
  setup_s=$SECONDS
  export EVAL_TEST_NUM="${EVAL_TEST_NUM:-2}" SEEDS_ROOT="${SEEDS_ROOT:-$BUNDLE/seeds/tabletop}"
  mkdir -p "$RUNS"
  rollpool queue -o "$RUNS/demo_queue.txt"
  for policy in expert tinyvla; do
    evaluate "$policy" "$workers"
  done
  say "== set-up took $setup_s s, all of it $SECONDS s"
  if ((${#incomplete[@]})); then
    say "== incomplete: ${!incomplete[*]}; run this again to go on"
    return 1
  fi
}

main "$@"
