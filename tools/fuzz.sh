#!/usr/bin/env bash
# `./lockstep fuzz …`: read by the script `lockstep`, whose functions it uses.

# NAME and Bazel label of every fuzz target, a line each.
fuzz_targets() {
  grep -r --include=BUILD.bazel -A1 '^lockstep_cc_fuzz_test($' . |
    sed -n 's|^\./\(.*\)/BUILD\.bazel-.*name = "\(.*\)_fuzz_test",$|\2 //\1:\2_fuzz_test|p' | sort
}

list_fuzz_targets() {
  say "./lockstep fuzz NAME [--minutes N] [FLAGS of libFuzzer], where NAME is one of"
  fuzz_targets | sed 's/ .*//; s/^/  /'
}

# The folders of the checked-in corpus of the target `label`.
fuzz_corpus() {
  bazel query --noshow_progress "labels(data, $1)" 2> /dev/null |
    sed -n 's|^//\(.*\):\(.*\)$|\1/\2|p' | xargs -r -n 1 dirname | sort -u
}

fuzz() {
  local name=${1:-} minutes=1 label missing folder binary
  local -a flags=() corpus
  [ -n "$name" ] || { list_fuzz_targets; return; }
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      --minutes)
        [ $# -gt 1 ] || fail "$1 wants a value."
        set -- "$1=$2" "${@:3}"
        continue
        ;;
      --minutes=*) minutes=${1#*=} ;;
      *) flags+=("$1") ;;
    esac
    shift
  done
  [[ $minutes =~ ^[1-9][0-9]*$ ]] || fail "--minutes is $minutes: it should be a whole number from 1 on."
  label=$(fuzz_targets | sed -n "s/^${name%_fuzz_test} //p")
  [ -n "$label" ] || fail "there is no fuzz target $name: ./lockstep fuzz lists them."
  missing=$(tools/setup.sh --missing dev | xargs)
  [ -z "$missing" ] || fail "fuzzing takes clang; missing are $missing. tools/setup.sh dev installs them."

  build --config=fuzz "$label"
  mapfile -t corpus < <(fuzz_corpus "$label")
  folder=.lockstep/fuzz/${name%_fuzz_test}
  mkdir -p "$folder/corpus"
  binary=bazel-bin/${label#//}
  say "New inputs go to $folder/corpus, one that fails to $folder."
  "${binary/:/\/}" -max_total_time=$((60 * minutes)) -print_final_stats=1 \
    -artifact_prefix="$folder/" "${flags[@]}" "$folder/corpus" "${corpus[@]}"
}
