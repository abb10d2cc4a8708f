#!/usr/bin/env bash
# Stage to this node's own disk what every job needs: the Python environments, code and assets.
#
#   bash scripts/stage_base_node.sh [--use FILE]
#
# Goes to DXVLA_LOCAL (/tmp/dxvla_local). What is there and unchanged is warm and stays; a source that
# changed is copied again, unchanged files are linked. DXVLA_SAPIEN_B1=1 puts SAPIEN 3.0.0b1 into the
# copy of the simulator's environment. Run it beforehand to warm a node, once on each:
#   srun --nodes=4 --ntasks-per-node=1 bash scripts/stage_base_node.sh
# A job calls it through scripts/lib/staging.sh, which keeps the copies from being pruned meanwhile.
set -euo pipefail

# shellcheck source=scripts/lib/console.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib/console.sh"

main() {
  if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
    usage "${BASH_SOURCE[0]}"
    return
  fi
  exec "$(dirname -- "${BASH_SOURCE[0]}")/rollpool" stage base "$@"
}

main "$@"
