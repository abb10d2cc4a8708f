# shellcheck shell=bash
# Source this file (bash or zsh) to work with rollpool:   source env.sh
#
# It sets defaults and nothing else; a value that is already in the environment stays.
#   EVAL_ROOT      this folder, always
#   BUNDLE         where seed banks and queue files come from     (EVAL_ROOT)
#   HF_HOME        Hugging Face's cache                           (its own default)
#   ROLLPOOL_ENVS  the environments that scripts/setup.sh builds  (EVAL_ROOT/envs)
#   ROBOTWIN_PY    the simulator's Python                         (ROLLPOOL_ENVS/tabletop)
#   XVLA_PY        the model's Python                             (ROLLPOOL_ENVS/model)
# A private file .env beside this one (tokens, a site's own paths) is sourced first, everything it
# assigns is exported, and nothing of it is ever printed.

EVAL_ROOT="$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]:-$0}")" && pwd -P)"
export EVAL_ROOT

if [ -f "$EVAL_ROOT/.env" ]; then
  case "$-" in *a*) _rollpool_export=- ;; *) _rollpool_export=+ ;; esac
  set -a
  # shellcheck source=/dev/null
  . "$EVAL_ROOT/.env"
  set "${_rollpool_export}a"
  unset _rollpool_export
fi

export BUNDLE="${BUNDLE:-$EVAL_ROOT}"
export HF_HOME="${HF_HOME:-${XDG_CACHE_HOME:-${HOME:-$EVAL_ROOT}/.cache}/huggingface}"
export ROLLPOOL_ENVS="${ROLLPOOL_ENVS:-$EVAL_ROOT/envs}"
case "$ROLLPOOL_ENVS" in /*) ;; *) ROLLPOOL_ENVS="$PWD/$ROLLPOOL_ENVS" ;; esac
export ROBOTWIN_PY="${ROBOTWIN_PY:-$ROLLPOOL_ENVS/tabletop/bin/python}"
export XVLA_PY="${XVLA_PY:-$ROLLPOOL_ENVS/model/bin/python}"

case ":$PATH:" in
*":$EVAL_ROOT/scripts:$ROLLPOOL_ENVS/toolkit/bin:"*) ;;
*) export PATH="$EVAL_ROOT/scripts:$ROLLPOOL_ENVS/toolkit/bin:$PATH" ;;
esac
