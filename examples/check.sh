#!/usr/bin/env bash
# Builds every client that this machine has the tools for, and asks a gateway
# with each: examples/check.sh HOST:PORT [PROMPT]
#
# With --build in place of HOST:PORT nothing is asked. What is built lies in
# .lockstep/examples, each language's way to run it in LANGUAGE.sh there.
set -euo pipefail
cd "$(dirname "$0")"

address=${1:?usage: examples/check.sh HOST:PORT|--build [PROMPT]}
prompt=${2:-The capital of France is}
root=$(cd .. && pwd)
build=$root/.lockstep/examples
mkdir -p "$build"

needs() {
  local tool
  for tool in "$@"; do
    command -v "$tool" > /dev/null || { echo "there is no $tool" && exit 1; }
  done
}

# Writes what runs a language's client.
runs() {
  echo "$2 \"\$@\"" > "$build/$1.sh"
}

build_python() {
  needs python3 protoc grpc_python_plugin
  python3 -c 'import grpc'
  mkdir -p "$build/python"
  protoc --proto_path="$root" --python_out="$build/python" --grpc_out="$build/python" \
    --plugin=protoc-gen-grpc="$(command -v grpc_python_plugin)" "$root"/proto/{embedding,sampling,inference}.proto
  runs python "PYTHONPATH=$build/python exec python3 $root/examples/python/client.py"
}

build_node() {
  needs node npm
  mkdir -p "$build/node"
  cp node/package.json "$build/node"
  npm install --silent --no-audit --no-fund --prefix "$build/node"
  runs node "NODE_PATH=$build/node/node_modules exec node $root/examples/node/client.js"
}

build_go() {
  needs go protoc
  cp -r go "$build"
  cd "$build/go"
  local options=Mproto/embedding.proto=./lockstep,Mproto/inference.proto=./lockstep,Mproto/sampling.proto=./lockstep
  go mod tidy -e
  protoc --proto_path="$root" --go_out=. --go_opt="$options" --go-grpc_out=. --go-grpc_opt="$options" \
    --plugin="$(go tool -n protoc-gen-go)" --plugin="$(go tool -n protoc-gen-go-grpc)" \
    "$root"/proto/{embedding,sampling,inference}.proto
  go mod tidy
  go build -o client .
  runs go "exec $build/go/client"
}

build_java() {
  needs java mvn
  cp -r java "$build"
  cd "$build/java"
  mkdir -p target/protos/proto
  cp "$root"/proto/{embedding,sampling,inference}.proto target/protos/proto
  mvn --quiet compile dependency:build-classpath -Dmdep.outputFile=target/classpath
  runs java "exec java -Dfile.encoding=UTF-8 -cp $build/java/target/classes:$(cat target/classpath) Client"
}

for language in python node go java; do
  rm -f "$build/$language.sh"
  set +e # which an `if` around it would do, too, and to all that it calls
  (set -e && "build_$language") > "$build/$language.log" 2>&1
  set -e
  if [ ! -f "$build/$language.sh" ]; then
    echo "$language: not built: $(tail -n 1 "$build/$language.log")"
  elif [ "$address" = --build ]; then
    echo "$language: built"
  else
    echo "$language: $(bash "$build/$language.sh" "$address" "$prompt" 2>&1 | tr '\n' ' ')"
  fi
done
