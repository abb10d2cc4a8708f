#!/usr/bin/env bash
# Measure policies on the built-in benchmark, and write the table that the README shows.
#
#   bash scripts/measure_tabletop.sh [--workers N]
#
# Runs expert and tinyvla on clean and on three densities of clutter, without videos, each in a
# run of its own (runs/measured_<policy>_<config>), and puts the table between the benchmark markers of
# README.md. Run it again to resume. About half an hour on two cores.
#   SEEDS_ROOT     seed bank (default: seeds/tabletop)
#   MEASURED_CLEAN, MEASURED_CLUTTER   seeds per task on clean and on each density (default: 20, 10)
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"

readonly RUNS="${RUNS_ROOT:-$EVAL_ROOT/runs}"
readonly POLICIES=(expert tinyvla) CONFIGS=(clean d6 d10 d15)

main() {
  local workers=2 policy config run count
  case "${1:-}" in
  -h | --help) usage "${BASH_SOURCE[0]}" && return ;;
  --workers) workers="$(number --workers "${2:-}")" ;;
  '') ;;
  *) die "measure_tabletop.sh $1" "no such option" "see measure_tabletop.sh --help" ;;
  esac

  export SEEDS_ROOT="${SEEDS_ROOT:-$BUNDLE/seeds/tabletop}"
  mkdir -p "$RUNS"
  rollpool queue -o "$RUNS/measured_queue.txt"
  for policy in "${POLICIES[@]}"; do
    for config in "${CONFIGS[@]}"; do
      run="measured_${policy}_$config"
      count="${MEASURED_CLUTTER:-10}"
      [[ "$config" != clean ]] || count="${MEASURED_CLEAN:-20}"
      say "== $run"
      rollpool run "$run" --queue "$RUNS/measured_queue.txt" --policy "$policy" --config "$config" \
        --test-num "$count" --video none --workers "$workers"
      python "$EVAL_ROOT/organize_results.py" "$run" "measured_$policy" >/dev/null
    done
  done
  python "$EVAL_ROOT/scripts/lib/measured_table.py" "$EVAL_ROOT/README.md" "${POLICIES[*]}" "${CONFIGS[*]}"
}

main "$@"
