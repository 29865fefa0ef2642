#!/usr/bin/env bash
# Installs what Lockstep is built with, on Debian 12.
#
#   tools/setup.sh                    what building and running need
#   tools/setup.sh dev                also clang: layering_check, fuzzing, clangd, clang-tidy, clang-format
#   tools/setup.sh --missing [dev]    installs nothing, prints the packages that are missing
#
# Prints nothing, and asks no mirror, when everything is there.
set -euo pipefail

# What llguidance asks for.
LEAST_RUST=1.87

BUILD_PACKAGES=(
  ca-certificates g++ python3 python3-pip
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  libabsl-dev libbenchmark-dev libboost-dev libgflags-dev libgmock-dev
  libgoogle-glog-dev libgrpc++-dev libgtest-dev libprotobuf-dev libssl-dev
  nlohmann-json3-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev
)
DEV_PACKAGES=(
  clang-16 clang-format-16 clang-tidy-16 clangd-16 libclang-rt-16-dev lld-16
)

rust_is_new_enough() {
  local version
  version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || return 1
  [ -n "$version" ] && printf '%s\n' "$LEAST_RUST" "$version" | sort -CV
}

missing() {
  local wanted=("${BUILD_PACKAGES[@]}")
  [ "${1:-}" = dev ] && wanted+=("${DEV_PACKAGES[@]}")
  rust_is_new_enough || wanted+=(cargo-web rustc-web)
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort) \
    <(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u)
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo --preserve-env=DEBIAN_FRONTEND "$@"
  else
    echo "Installing packages takes root: run tools/setup.sh as root, or install sudo." >&2
    exit 1
  fi
}

if [ "${1:-}" = --missing ]; then
  missing "${2:-}"
  exit
fi

mapfile -t packages < <(missing "${1:-}")
[ "${#packages[@]}" = 0 ] && exit

echo "Installing ${#packages[@]} packages: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
as_root apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
  install --yes --no-install-recommends "${packages[@]}"

if ! rust_is_new_enough; then
  echo "The Rust found, $(rustc --version 2>/dev/null || echo none), is older than $LEAST_RUST:" \
    "add Debian's security archive to the sources of apt, or put a newer one first on PATH." >&2
  exit 1
fi
