#!/usr/bin/env bash
# Train tinyvla from nothing: policy/tinyvla/train.sh [DIR]
#
#   bash policy/tinyvla/train.sh runs/tinyvla_training
#
# Collects expert episodes, trains, and then twice lets the network act while the expert says what it
# should have done (DAgger), training further each time. What it collects goes to DIR (about 1 GB,
# default runs/tinyvla_training), the checkpoint to policy/tinyvla/checkpoints/tinyvla.safetensors.
# Under an hour on two free CPU cores. An interrupted training goes on with its first unfinished step.
set -euo pipefail

# shellcheck source=env.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../env.sh"
# shellcheck source=scripts/lib/console.sh
. "$EVAL_ROOT/scripts/lib/console.sh"

readonly HERE="$EVAL_ROOT/policy/tinyvla" COLLECTORS=2
# Per round: samples a task and collector, the network's share of the acting, steps of training all
# of the network, and of its trunk alone.
readonly DECISIONS=(160 80 80) SHARE=(0 0.6 0.8) STEPS=(3000 2000 3500) POLISH=(2000 2000 4000)
# Threads that wait for each other must not burn what they wait for.
export OMP_WAIT_POLICY=passive
server="" served_at=0

# collect ROUND [PORT]: the samples of a round, by COLLECTORS processes with seeds of their own.
collect() {
  local round="$1" port="${2:-0}" part pids=() failed=0
  for ((part = 0; part < COLLECTORS; part++)); do
    [[ -f "$dir/round$round/$part.npz" ]] && continue
    "$ROBOTWIN_PY" "$HERE/training/collect.py" --out "$dir/round$round/$part.npz" \
      --first-seed $((1000 + 5000 * round + part)) --stride "$COLLECTORS" \
      --decisions "${DECISIONS[round]}" --port "$port" --share "${SHARE[round]}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  ((failed == 0)) || die "collect round $round" "a collector failed, see above" "mend it and run this again"
}

# serve CHECKPOINT: starts a model server; sets `server` and `served_at`, its process and its port.
serve() {
  local log="$dir/server.log" port="" tenths
  : >"$log" # else the last server's port may be read before this one has emptied it
  "$XVLA_PY" "$EVAL_ROOT/scripts/policy_model_server.py" --policy_name tinyvla --ckpt "$1" \
    >>"$log" 2>&1 &
  server=$!
  for ((tenths = 0; tenths < 600; tenths++)); do
    port="$(sed -n 's/^serving .*:\([0-9]*\)$/\1/p' "$log")"
    [[ -n "$port" ]] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  [[ -n "$port" ]] || die "model server of $1" "it does not serve, see $log" "mend it and run this again"
  served_at="$port"
}

stop_serving() {
  [[ -n "$server" ]] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=""
}

main() {
  case "${1:-}" in
  -h | --help) usage "${BASH_SOURCE[0]}" && return ;;
  -*) die "train.sh $1" "no such option" "see train.sh --help" ;;
  esac
  local round init=() weights
  dir="${1:-$EVAL_ROOT/runs/tinyvla_training}"
  mkdir -p "$dir"
  trap stop_serving EXIT
  for round in "${!STEPS[@]}"; do
    weights="$dir/round$round.safetensors"
    if [[ -f "$weights" ]]; then
      say "== round $round is there already: $weights"
    else
      say "== round $((round + 1)) of ${#STEPS[@]}: collecting"
      served_at=0
      if ((round)); then
        serve "$dir/round$((round - 1)).safetensors"
        init=(--init "$dir/round$((round - 1)).safetensors")
      fi
      collect "$round" "$served_at"
      stop_serving
      say "== round $((round + 1)) of ${#STEPS[@]}: training"
      "$XVLA_PY" "$HERE/training/train.py" --data "$dir" --out "$weights" \
        --steps "${STEPS[round]}" --polish "${POLISH[round]}" --seed "$round" "${init[@]}"
    fi
  done
  install -D -m 644 "$weights" "$HERE/checkpoints/tinyvla.safetensors"
  say "== done: $HERE/checkpoints/tinyvla.safetensors"
}

main "$@"
