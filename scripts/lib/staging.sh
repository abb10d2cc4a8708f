# shellcheck shell=bash
# Running a node's job from its own disk. Needs console.sh and env.sh. Sourced, never run.

# staging::enter: stage what is cold, then let this shell and its children use the copies.
# Exports EVAL_ROOT and the rest; nothing of it is pruned as long as this shell lives, since it holds
# a lock on the file that says so, and the kernel lets go of that whatever ends the shell.
staging::enter() {
  local file fd
  file="$(mktemp "${TMPDIR:-/tmp}/rollpool-use.XXXXXXXX")"
  exec {fd}<>"$file"
  flock --shared --timeout 10 "$fd" ||
    die "the lock $file" "cannot be taken" "TMPDIR must be on the node's own disk"
  bash "$EVAL_ROOT/scripts/stage_base_node.sh" --use "$file"
  bash "$EVAL_ROOT/scripts/stage_giants_node.sh" --use "$file"
  # shellcheck source=/dev/null
  . "$file"
  export PATH="$EVAL_ROOT/scripts:$ROLLPOOL_ENVS/toolkit/bin:$PATH"
}
