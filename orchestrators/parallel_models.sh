#!/usr/bin/env bash
# Several models at once: a node of its own for each, and a pool that helps one after the other.
#
#   bash orchestrators/parallel_models.sh [--dry-run] NAME MODEL... [-- OPTION of rollpool submit...]
#
#   QUEUE=seeds/queue.txt SEEDS_ROOT=seeds/clean EVAL_TEST_NUM=5 BENCH_CONFIG=clean POOL_NODES=6 \
#     bash orchestrators/parallel_models.sh giants big:CKPT_NAME=big,GIANT_CODE_DIR=/code/big \
#     huge:CKPT_NAME=huge,GIANT_CODE_DIR=/code/huge -- --partition gb10 --gres gpu:1
#
# MODEL is LABEL:VARIABLE=VALUE,... and is evaluated in the run NAME_LABEL, its tables are in
# runs/NAME_LABEL_report; a value may have commas, spaces and lines of its own. The POOL_NODES nodes
# (default: 1) share a model's queue with its own node and go on to the next one when it is done, so
# every model moves all the time. Run it again after whatever happened: what is finished is skipped,
# the rest resumed.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"
# shellcheck source=scripts/lib/orchestrator.sh
. "$EVAL_ROOT/scripts/lib/orchestrator.sh"

main() {
  orchestrator::arguments "${BASH_SOURCE[0]}" 2 "$@"
  local name="${words[0]}" model
  local models=("${words[@]:1}")
  for model in "${models[@]}"; do # each, before the first one is begun
    [[ "$model" =~ ^[^:]+:[A-Z][A-Z0-9_]*= ]] || die "model $model" "no LABEL:VARIABLE=VALUE" "see --help"
  done
  for model in "${models[@]}"; do
    orchestrator::variables "${model#*:}"
    # Beforehand: its own node and the pool ask for the same at the same time.
    orchestrator::prepare "${name}_${model%%:*}" ${QUEUE:+--queue "$QUEUE"}
    orchestrator::evaluate "${name}_${model%%:*}" --nodes 1 &
    ((${#dry_run[@]} == 0)) || wait # what is printed keeps its order
  done
  for model in "${models[@]}"; do
    orchestrator::variables "${model#*:}"
    orchestrator::evaluate "${name}_${model%%:*}" --nodes "${POOL_NODES:-1}"
  done
  wait
  for model in "${models[@]}"; do
    orchestrator::rates "${name}_${model%%:*}" "${name}_${model%%:*}_report"
  done
  orchestrator::end
}

main "$@"
