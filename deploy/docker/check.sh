#!/usr/bin/env bash
# Runs the image without a container engine: its files alone, read-only, as its
# user, with no network but its own; as root.
#
#   deploy/docker/check.sh FOLDER MODEL
#
# FOLDER is Bazel's bazel-bin, MODEL a folder or a file. Ends with its size.
set -euo pipefail
PATH=$PATH:/usr/sbin

if [ "${1:-}" != --inside ]; then
  [ "$(id -u)" = 0 ] || { echo "skipped: it takes root" && exit 0; }
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  chmod 755 "$root"
  "$(dirname "$0")/assemble.sh" "$1" "$root"
  # Of both lists the one is in the other.
  python3 - "$root/usr/share/lockstep" << 'END'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
listed = {tuple(line.split()[:2]) for line in (folder / "packages").read_text().splitlines()}
told = {(each["name"], each["versionInfo"]) for each in json.loads((folder / "sbom.spdx.json").read_text())["packages"]}
assert len(listed) > 20 and listed < told, listed - told
END
  unshare --mount --net --pid --fork --kill-child "$0" --inside "$root" "$(realpath "$2")"
  exit
fi

LIMIT_S=60 # Only what fails waits for it.
MOST_MB=200

root=$2
model=$3
megabytes=$(du --summarize --block-size=1M "$root" | cut -f 1)

mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind "$(dirname "$model")" "$root/models"
model=/models/$(basename "$model")
mount -o remount,bind,ro "$root"
ip link set lo up

inside() {
  exec chroot --userspec=10001:10001 "$root" /usr/local/bin/"$@"
}

(inside worker --model="$model" --tensor_parallel_size=2 --listen=0.0.0.0:50052 --drain_timeout=5) &
worker=$!
(inside await_serving 127.0.0.1:50053 "$LIMIT_S")
(inside gateway --model="$model" --workers=127.0.0.1:50052 --drain_timeout=5) &
gateway=$!
(inside await_serving 127.0.0.1:50054 "$LIMIT_S")
python3 - << 'END'
import json, urllib.request
body = json.dumps({"prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": True}).encode()
request = urllib.request.Request(
    "http://127.0.0.1:8080/v1/completions", body, {"content-type": "application/json"}
)
answer = json.load(urllib.request.urlopen(request))
assert answer["usage"]["completion_tokens"] == 4, answer
END

# As an engine ends a container: each leaves by itself, with exit status 0.
kill -TERM "$gateway"
wait "$gateway"
kill -TERM "$worker"
wait "$worker"
echo "the image has $megabytes MB"
[ "$megabytes" -le "$MOST_MB" ]
