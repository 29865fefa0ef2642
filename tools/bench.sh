#!/usr/bin/env bash
# `./lockstep bench …`: read by the script `lockstep`, whose functions it uses.

# Fetches the default model where no flag names another; prints its path.
model_flag() {
  local flag
  for flag in "$@"; do
    case $flag in
      --model | --model=* | -model | -model=*) return ;;
    esac
  done
  fetch model models >&2
  say "--model=$CACHE/models/$DEFAULT_MODEL"
}

# Starts a server on a port of the system's choice. Sets `started` and `port`.
start_somewhere() {
  local name=$1 log=$LOGS/$1.log
  : > "$log" # of an earlier run
  start "$@" --listen=127.0.0.1:0 --health_listen= --metrics_port=0
  port=$(tail -n +1 -f --pid="$started" "$log" 2> /dev/null |
    sed -n "/^$name: serving .*:\([0-9]*\)\$/{s//\1/p;q}") || true
  [ -n "$port" ] && return
  tail -n 8 "$log" >&2
  fail "the $name does not start; its last words are above, all of them in $log."
}

bench_engine() {
  local -a model
  install
  mapfile -t model < <(model_flag "$@")
  build //bench:engine_bench
  bazel-bin/bench/engine_bench "${model[@]}" "$@"
}

# A flag that neither is the clients' goes to the worker and to its twin in
# process.
bench_serving() {
  local target='' model=''
  local -a clients=() engine=()
  while [ $# -gt 0 ]; do
    case $1 in
      --model | --target | --clients | --repeat)
        [ $# -gt 1 ] || fail "$1 wants a value."
        set -- "$1=$2" "${@:3}"
        continue
        ;;
      --model=*) model=$1 ;;
      --target=*) target=${1#*=} ;;
      --clients=* | --repeat=* | --json) clients+=("$1") ;;
      *) engine+=("$1") ;;
    esac
    shift
  done
  install
  build //bench/serving:serving_bench //worker:worker //frontend:gateway
  if [ -n "$target" ]; then
    bazel-bin/bench/serving/serving_bench --target="$target" ${model:+"$model"} "${engine[@]}" "${clients[@]}"
    return
  fi

  [ -n "$model" ] || model=$(model_flag)
  LOGS=$LOGS/bench
  mkdir -p "$LOGS"
  worker='' gateway=''
  trap on_interrupt INT TERM HUP
  trap stop_servers EXIT
  start_somewhere worker bazel-bin/worker/worker "$model" "${engine[@]}"
  worker=$started
  start_somewhere gateway bazel-bin/frontend/gateway "$model" --workers="127.0.0.1:$port" --http_listen=
  gateway=$started
  bazel-bin/bench/serving/serving_bench --target="127.0.0.1:$port" "$model" "${engine[@]}" "${clients[@]}"
}

bench_gateway() {
  local -a model
  install
  mapfile -t model < <(model_flag "$@")
  build //bench/gateway:gateway_bench //frontend:gateway
  bazel-bin/bench/gateway/gateway_bench --gateway=bazel-bin/frontend/gateway "${model[@]}" "$@"
}

bench() {
  local kind=${1:-}
  [ $# = 0 ] || shift
  case $kind in
    engine) bench_engine "$@" ;;
    serving) bench_serving "$@" ;;
    gateway) bench_gateway "$@" ;;
    kernels)
      install
      build //bench:kernels_bench
      bazel-bin/bench/kernels_bench "$@"
      ;;
    collectives)
      install
      build //bench/collectives:collectives_bench
      bazel-bin/bench/collectives/collectives_bench "$@"
      ;;
    load)
      install
      build //bench/load:load
      bazel-bin/bench/load/load "$@"
      ;;
    routing)
      install
      build //tests/simulation/routing:routing
      bazel-bin/tests/simulation/routing/routing "$@"
      ;;
    *) fail "bench measures the engine, serving, the gateway, the kernels, collectives, routing or load: ./lockstep bench engine" ;;
  esac
}
