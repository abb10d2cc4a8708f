#!/usr/bin/env bash
# Train bc on the tasks of policy/bc/queue.txt and measure it.
#
#   bash policy/bc/measure.sh [N]
#
# Sets up what is needed, trains policy/bc/checkpoints/bc.npz unless it is there, runs N episodes
# (default 20) of each task and prints the table. Run again, it goes on with what is missing. The
# seeds, policy/bc/seeds, were looked at by nobody while bc was made.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"

case "${1:-}" in
-h | --help) usage "${BASH_SOURCE[0]}" && exit ;;
-*) die "measure.sh $1" "no such option" "see measure.sh --help" ;;
esac

export SIMULATOR=metaworld EVAL_VIDEO="${EVAL_VIDEO:-none}"
readonly HERE="$EVAL_ROOT/policy/bc" RUN="${STUDY_RUN:-bc_metaworld}"
checkpoint="$HERE/checkpoints/bc.npz"

bash "$EVAL_ROOT/scripts/setup.sh" toolkit metaworld
if [[ ! -f "$checkpoint" ]]; then
  mapfile -t tasks < <(cut -d ' ' -f 2 "$HERE/queue.txt")
  OMP_NUM_THREADS=1 "$ROLLPOOL_ENVS/metaworld/bin/python" "$HERE/training/train.py" \
    --out "$checkpoint" "${tasks[@]}"
fi
rollpool run "$RUN" --queue "$HERE/queue.txt" --policy bc --config default \
  --seeds "$HERE/seeds" --test-num "${1:-20}" --workers 2
"$ROLLPOOL_ENVS/toolkit/bin/python" "$EVAL_ROOT/organize_results.py" "$RUN" bc
