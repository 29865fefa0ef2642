#!/usr/bin/env bash
# Proves that a bare Debian 12 needs nothing but this checkout.
#
#   tools/fresh_machine.sh [FOLDER]      default: a new folder below /var/tmp
#
# Installs a minimal Debian into FOLDER, copies what is committed and nothing
# else, and runs the README's commands there: `./lockstep up`, a question to it,
# and `./lockstep test`. Prints how long each took. As root, by hand: it takes
# half an hour, 10 GB and the network. FOLDER stays, for a look around.
#
# Where packages come from is taken from this machine: its sources of apt, its
# certificates, the configurations of pip, npm and cargo, the proxy variables.
set -euo pipefail
cd "$(dirname "$0")/.."

SUITE=bookworm
COPIED=(
  /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/keyrings /etc/apt/trusted.gpg.d
  /etc/ssl/certs/ca-certificates.crt /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/npmrc
  "$HOME/.config/pip" "$HOME/.npmrc" "$HOME/.cargo/config.toml"
)
VARIABLES='^([a-z]+_proxy|[A-Z]+_PROXY|PIP_[A-Z_]+|npm_config_[a-z_]+|CARGO_(HTTP|REGISTRIES|NET)_[A-Z_]+|SSL_CERT_FILE|NODE_EXTRA_CA_CERTS)='

[ "$(id -u)" = 0 ] || { echo "Making a root takes root." >&2; exit 1; }
root=${1:-$(mktemp -d /var/tmp/lockstep-fresh.XXXXXX)}

make_root() {
  command -v debootstrap > /dev/null || apt-get install -qqy --no-install-recommends debootstrap
  local mirror path
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' | sed -n "s/^$SUITE //p" | head -n 1)
  debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$root" "$mirror" > "$root.log"
  rm "$root/etc/apt/sources.list"
  for path in "${COPIED[@]}"; do
    [ -e "$path" ] || continue
    mkdir -p "$root/$(dirname "$path")"
    cp -rL "$path" "$root/$(dirname "$path")/"
  done
  apt-config dump Acquire::http Acquire::https > "$root/etc/apt/apt.conf.d/99host"
  mkdir "$root/lockstep"
  git archive HEAD | tar -x -C "$root/lockstep"
}

# What a newcomer does, run inside the root; HOME is not even set.
write_visit() {
  cat > "$root/visit" << 'END'
#!/bin/bash
set -euo pipefail
cd /lockstep

took() {
  echo "TIME $1: $((SECONDS - began)) s"
  began=$SECONDS
}

start_up() {
  coproc UP { exec ./lockstep up 2>&1; }
  # Subshells do not have the file descriptors of a coprocess, but they have this.
  exec {output}<&"${UP[0]}"
  local line
  while read -r line <&"$output"; do
    echo "  $line"
    [ "$line" != "Lockstep is ready." ] || return 0
  done
  return 1
}

stop_up() {
  local pid=$UP_PID
  cat <&"$output" > /dev/null &
  kill -TERM "$pid"
  wait "$pid"
}

began=$SECONDS
start_up
took "first ./lockstep up, until it is ready"
answer=$(printf 'What is the capital of France?\n/exit\n' | ./lockstep chat)
echo "$answer"
[ -n "$answer" ]
took "a question"
stop_up
took "stopping"
start_up
took "second ./lockstep up"
stop_up
began=$SECONDS
./lockstep test
took "./lockstep test"
END
  chmod +x "$root/visit"
}

# Mounts and processes of the visit are its own and end with it.
visit() {
  local -a variables
  mapfile -t variables < <(env | grep -E "$VARIABLES" || true)
  unshare --mount --pid --fork --kill-child bash -euc '
    mount --types proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --rbind /sys "$1/sys"
    root=$1
    shift
    exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" /visit
  ' visit "$root" "${variables[@]}"
}

SECONDS=0
make_root
echo "TIME a bare Debian: $SECONDS s"
write_visit
visit
echo "All of it took $SECONDS s; the root is $root."
