#!/usr/bin/env bash
# The container image holds all that the programs need: they run on its files
# alone. Takes root, for a root file system of their own.
set -euo pipefail
model=$(dirname "$(realpath tests/goldens/tiny/qwen3/bf16/config.json)")
exec deploy/docker/check.sh . "$model"
