#!/usr/bin/env bash
# Makes the Debian package of the programs that Bazel has built:
#
#   deploy/debian/build.sh FOLDER OUT.deb
#
# FOLDER is bazel-bin. The package has gateway, worker, tokenizer and chat as
# lockstep-NAME, a manual page of each with all its flags, systemd's units, the
# configuration that these read, and completion for bash. docs/packages.md.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"

from=${1:?usage: build.sh FOLDER OUT.deb}
out=${2:?usage: build.sh FOLDER OUT.deb}
PROGRAMS=(frontend/gateway worker/worker tokenizer_service/tokenizer frontend/chat/chat)

version=$(sed -n 's/.*kVersion\[\] = "\(.*\)".*/\1/p' ../../common/program/version.h)
architecture=$(dpkg --print-architecture)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree

names=()
for program in "${PROGRAMS[@]}"; do
  name=lockstep-$(basename "$program")
  names+=("$name")
  install -D --strip --mode=755 "$from/$program" "$tree/usr/bin/$name"
  "./describe.py" man "$name" "$version" "$tree/usr/bin/$name" | gzip -9n > "$scratch/page"
  install -D --mode=644 "$scratch/page" "$tree/usr/share/man/man8/$name.8.gz"
done
install -d "$tree/usr/share/bash-completion/completions"
for name in "${names[@]}"; do
  ./describe.py completion "$name" "$version" "$tree/usr/bin/$name" > "$tree/usr/share/bash-completion/completions/$name"
done
install -D --mode=644 --target-directory="$tree/usr/lib/systemd/system" systemd/*
install -D --mode=644 --target-directory="$tree/etc/lockstep" etc/*
install -D --mode=644 ../../LICENSE "$tree/usr/share/doc/lockstep/copyright"
gzip -9n < ../../CHANGELOG.md > "$scratch/changes"
install -D --mode=644 "$scratch/changes" "$tree/usr/share/doc/lockstep/changelog.gz"

# dpkg-shlibdeps wants to stand in a source package.
mkdir "$scratch/debian"
printf 'Source: lockstep\n\nPackage: lockstep\nArchitecture: any\nDescription: x\n' > "$scratch/debian/control"
depends=$(cd "$scratch" && dpkg-shlibdeps -O "${names[@]/#/tree/usr/bin/}" 2> /dev/null | sed 's/^shlibs:Depends=//')

mkdir "$tree/DEBIAN"
cat > "$tree/DEBIAN/control" << END
Package: lockstep
Version: $version
Architecture: $architecture
Maintainer: The developers of Lockstep <developers@lockstep.invalid>
Installed-Size: $(du --summarize --block-size=1024 "$tree" | cut --fields=1)
Depends: $depends, adduser
Section: net
Priority: optional
Description: serves large language models over gRPC and OpenAI's HTTP API
 A gateway takes text and streams the answer; groups of workers compute it, in
 lockstep, on one processor or many.
END
(cd "$tree" && find etc -type f -printf '/%p\n' | sort) > "$tree/DEBIAN/conffiles"
install --mode=755 postinst prerm postrm "$tree/DEBIAN"
(cd "$tree" && find usr -type f -exec md5sum {} + | sort --key=2) > "$tree/DEBIAN/md5sums"
dpkg-deb --root-owner-group --build "$tree" "$out" > /dev/null
