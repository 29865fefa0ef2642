#!/usr/bin/env bash
# Runs the tests of kernels, engine and groups, and the tiny models' goldens, on
# a GPU.
# Takes no more than what Bazel has built, and the checkout for the models:
#
#   bazel build --config=cuda //kernels/cuda:gpu_tests \
#     //worker/cuda_engine:gpu_tests //worker/runtime:gpu_tests \
#     //tests/goldens:gpu_tests
#   tests/gpu/run.sh [FOLDER]      default: bazel-bin
#
# With compute-sanitizer on PATH (of the toolkit's full installation) each runs
# under its memcheck and racecheck too. Ends with "N passed, N failed".
set -euo pipefail

folder=$(realpath "${1:-bazel-bin}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." # goldens are named from the top
passed=0
failed=0

run() {
  echo "== $*"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

shopt -s nullglob
tests=("$folder"/{kernels/cuda,worker/cuda_engine}/{,experts/,sampling/}*_test_gpu)
tests+=("$folder"/{worker/runtime,tests/goldens}/*_test_gpu)
[ ${#tests[@]} -gt 0 ] || {
  echo "There are no tests in $folder; build them first: see the top of $0." >&2
  exit 1
}
for test in "${tests[@]}"; do
  run "$test"
  if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
      run compute-sanitizer --tool "$tool" --error-exitcode 1 "$test"
    done
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
