#!/usr/bin/env bash
# Stage all nodes of a job at once with one reader of the shared filesystem: SLURM carries the rest.
#
#   salloc --nodes=4 ... bash scripts/stage_fanout.sh [CHECKPOINT...]      (or inside a batch script)
#
# Packs what the staging scripts would copy into archives on this node's disk (TMPDIR), broadcasts
# them with sbcast into DXVLA_LOCAL/incoming of every node of the job, and stages each node from
# there. A node that an archive did not reach reads the source, as ever.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"

folder=''

# each COMMAND...: once on every node of the job, with the variables of this shell.
each() { srun --export=ALL --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" "$@"; }

main() {
  local archive store="${DXVLA_LOCAL:-/tmp/dxvla_local}"
  if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
    usage "${BASH_SOURCE[0]}"
    return
  fi
  [[ -n "${SLURM_JOB_NUM_NODES:-}" ]] ||
    die "stage_fanout.sh" "not inside a SLURM job" "run it in salloc or in a batch script"
  folder="$(mktemp -d)"
  trap 'rm -rf -- "$folder"' EXIT
  rollpool stage base --pack "$folder"
  rollpool stage giants "$@" --pack "$folder"
  each mkdir -p "$store/incoming"
  for archive in "$folder"/*.tar; do
    sbcast --force "$archive" "$store/incoming/${archive##*/}" ||
      warn "sbcast of ${archive##*/} failed: the nodes read the source"
  done
  each bash "$EVAL_ROOT/scripts/stage_base_node.sh"
  each bash "$EVAL_ROOT/scripts/stage_giants_node.sh" "$@"
}

main "$@"
