#!/usr/bin/env bash
# Fetches a CUDA toolkit as Python wheels, each checked by its hash, and lays it
# out as CUDA's own installer does: bin, include, lib, nvvm.
#
#   tools/cuda_toolkit.sh third_party/cuda/requirements.txt FOLDER
#
# With CUDA_WHEELS=FOLDER the wheels are taken from there, and no index is asked.
# Bazel runs it, with --config=cuda; see docs/cuda.md.
set -euo pipefail

[ $# = 2 ] || {
  sed -n 's/^#   //p' "$0" >&2
  exit 2
}
requirements=$1
folder=$2

options=(--quiet --no-input --disable-pip-version-check --no-compile --no-deps
  --require-hashes --only-binary=:all:)
[ -z "${CUDA_WHEELS:-}" ] || options+=(--no-index --find-links "$CUDA_WHEELS")

mkdir -p "$folder"
cd "$folder"
python3 -m pip install "${options[@]}" --requirement "$requirements" --target wheels
mv wheels/nvidia/cu13/* .
mkdir licenses
for license in wheels/*.dist-info/licenses/L* wheels/*.dist-info/L*; do
  [ -f "$license" ] || continue
  package=${license#wheels/}
  cp "$license" "licenses/${package%%-*}"
done
rm -rf wheels
ln -s lib lib64 # where nvcc looks
