#!/usr/bin/env bash
# What SLURM runs on each node of a pool: this node's share of a run.
#
#   STUDY_RUN=my_run BENCH_CONFIG=clean SEEDS_ROOT=seeds/tabletop EVAL_TEST_NUM=5 ... \
#     srun --nodes=4 --ntasks-per-node=1 --gres=gpu:1 --kill-on-bad-exit=0 bash scripts/slurm_eval_node.sh
#
# Driven by the variables of the README. The run's queue.txt must be there; its episodes are sealed by
# the first node that comes. The node stages what is cold to its own disk and runs from there
# (DXVLA_STAGE=0: from the shared filesystem). Then it starts a lease worker for each GPU that SLURM gave (times
# WORKERS_PER_GPU), each pinned to its own, waits, and says how each of them ended. On a node without a
# GPU they render nothing. TERM makes them give their work back to the others and end.
#
# Nodes may join a run later, leave it or die: start more of these on the same run whenever you like.
# Exit code: the highest of the workers'; 0 nothing left, 75 the job's time is over, 2 refused.
set -euo pipefail

# sbatch runs a copy of its script in a folder of its own.
here="$(dirname -- "${BASH_SOURCE[0]}")"
[[ -f "$here/../env.sh" ]] || here="${EVAL_ROOT:-}/scripts"
# shellcheck source=env.sh
. "$here/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"
# shellcheck source=scripts/lib/staging.sh
. "$EVAL_ROOT/scripts/lib/staging.sh"

main() {
  case "${1:-}" in
  -h | --help) usage "$EVAL_ROOT/scripts/slurm_eval_node.sh" && return ;;
  '') ;;
  *) die "slurm_eval_node.sh $1" "it takes variables, no arguments" "see --help" ;;
  esac
  [[ "${DXVLA_STAGE:-1}" == 0 ]] || staging::enter
  # One process in place of this shell: SLURM's signals arrive once, at the one that passes them on.
  exec "$EVAL_ROOT/scripts/rollpool" node
}

main "$@"
