#!/usr/bin/env bash
# Sweep over configurations: one after the other, each on all of the pool; its rates at the end.
#
#   bash orchestrators/sweep.sh [--dry-run] NAME CONFIG... [-- OPTION of rollpool submit...]
#
#   QUEUE=seeds/clutter_%.txt SEEDS_ROOT=seeds/clutter EVAL_TEST_NUM=2 CKPT_NAME=my_model \
#     bash orchestrators/sweep.sh clutter d6 d9 d15 -- --nodes 13 --partition gb10 --gres gpu:1
#
# CONFIG is evaluated in the run NAME_CONFIG, with the queue QUEUE, in which % stands for CONFIG; the
# tables are in runs/NAME (clean) and runs/NAME_CONFIG. The variables of the README say what is
# evaluated. Run it again after whatever happened: what is finished is skipped, the rest resumed.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"
# shellcheck source=scripts/lib/orchestrator.sh
. "$EVAL_ROOT/scripts/lib/orchestrator.sh"

main() {
  orchestrator::arguments "${BASH_SOURCE[0]}" 2 "$@"
  local name="${words[0]}" config
  local configs=("${words[@]:1}")
  for config in "${configs[@]}"; do
    orchestrator::evaluate "${name}_$config" --config "$config" ${QUEUE:+--queue "${QUEUE//%/$config}"}
  done
  for config in "${configs[@]}"; do
    orchestrator::rates "${name}_$config" "$name"
  done
  orchestrator::end
}

main "$@"
