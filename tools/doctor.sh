#!/usr/bin/env bash
# `./lockstep doctor`: read by the script `lockstep`, whose functions it uses.

CPU_INFO=${LOCKSTEP_CPU_INFO:-/proc/cpuinfo}

# What --cpu_isa may be, the fastest last, as kernels/ops.cc has it.
cpu_isas() {
  has_all() {
    local feature
    for feature in "$@"; do
      grep -qw "$feature" "$CPU_INFO" || return 1
    done
  }
  local isas=reference
  if has_all avx2 fma f16c; then
    isas+=", avx2"
    ! has_all avx512{f,bw,vl,dq,_vnni} || isas+=", avx512_vnni"
  else
    isas+=", which is slow: it has no AVX2"
  fi
  say "$isas"
}

doctor() {
  local faults=0 packages free_gb memory_gb
  lacks() {
    say "missing   $1"
    say "          $2"
    faults=1
  }
  packages=$(tools/setup.sh --missing | xargs)
  if [ -z "$packages" ]; then
    say "ok        packages; $(rustc --version)"
  else
    lacks "packages: $packages" "tools/setup.sh installs them"
  fi
  say "ok        processor: $(cpu_isas)"
  memory_gb=$(awk '/^MemTotal:/ { print int($2 / 1048576) }' /proc/meminfo)
  if [ "$memory_gb" -ge 3 ]; then
    say "ok        memory: $memory_gb GB"
  else
    lacks "memory: $memory_gb GB" "building takes 4 GB"
  fi
  free_gb=$(df --output=avail -k "$CACHE" | awk 'NR == 2 { print int($1 / 1048576) }')
  if [ "$free_gb" -ge 5 ]; then
    say "ok        disk: $free_gb GB free in $CACHE"
  else
    lacks "disk: $free_gb GB free in $CACHE" "the build and the models take 5 GB"
  fi
  if [ -f "$CACHE/models/$DEFAULT_MODEL" ]; then
    say "ok        model: $DEFAULT_MODEL"
  else
    lacks "model: $DEFAULT_MODEL" "./lockstep up fetches it, or: tools/fetch.sh model $CACHE/models"
  fi
  if [ -x bazel-bin/worker/worker ] && [ -x bazel-bin/frontend/gateway ]; then
    say "ok        build"
  else
    lacks "build" "./lockstep build"
  fi
  return "$faults"
}
