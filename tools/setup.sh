#!/usr/bin/env bash
# Installs what Lockstep is built with, on Debian 12.
#
#   tools/setup.sh                    what building and running need
#   tools/setup.sh dev                also clang: layering_check, fuzzing, clangd, clang-tidy, clang-format
#   tools/setup.sh --missing [dev]    installs nothing, prints the packages that are missing
#   tools/setup.sh --rust             prints the folder of the Rust to use: the first new enough one
#                                     on PATH, of rustup, or of Debian
#
# Prints nothing, and asks no mirror, when everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."

LEAST_RUST=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' third_party/text/Cargo.toml)

BUILD_PACKAGES=(
  ca-certificates g++ iproute2 python3 python3-grpcio python3-pip python3-yaml
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  libabsl-dev libbenchmark-dev libboost-dev libcurl4-openssl-dev libgflags-dev libgloo-dev libgmock-dev
  libgoogle-glog-dev libgrpc++-dev libgtest-dev libprotobuf-dev libssl-dev
  nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev
)
DEV_PACKAGES=(
  clang-16 clang-format-16 clang-tidy-16 clangd-16 libclang-rt-16-dev lld-16
)

rust_folder() {
  local folder version
  local -a folders
  IFS=: read -ra folders <<< "$PATH:${HOME:-}/.cargo/bin:/usr/bin"
  for folder in "${folders[@]}"; do
    version=$("$folder/rustc" --version 2> /dev/null | cut -d ' ' -f 2) || continue
    if printf '%s\n' "$LEAST_RUST" "$version" | sort -CV; then
      echo "$folder"
      return
    fi
  done
  return 1
}

missing() {
  local wanted=("${BUILD_PACKAGES[@]}")
  [ "${1:-}" = dev ] && wanted+=("${DEV_PACKAGES[@]}")
  rust_folder > /dev/null || wanted+=(cargo-web rustc-web)
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

case ${1:-} in
  --missing)
    missing "${2:-}"
    exit
    ;;
  --rust)
    rust_folder
    exit
    ;;
esac

mapfile -t packages < <(missing "${1:-}")
[ "${#packages[@]}" = 0 ] && exit

echo "Installing ${#packages[@]} packages: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
as_root apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
  install --yes --no-install-recommends "${packages[@]}"

if ! rust_folder > /dev/null; then
  echo "No Rust is new enough, $LEAST_RUST: add Debian's security archive to the sources of apt," \
    "or put a newer rustc and cargo on PATH." >&2
  exit 1
fi
