#!/usr/bin/env bash
# Puts together the files of the image, and of nothing else:
#
#   deploy/docker/assemble.sh FOLDER ROOT
#
# FOLDER is Bazel's bazel-bin, in which the programs are built, ROOT a folder to
# make. What they need comes from this machine, so on Debian 12: shared libraries
# and certificates; no shell. What came from which package is in
# ROOT/usr/share/lockstep/packages, and what all is made of in sbom.spdx.json there.
set -euo pipefail

from=${1:?usage: assemble.sh FOLDER ROOT}
root=${2:?usage: assemble.sh FOLDER ROOT}
USER_ID=10001

PROGRAMS=(worker/worker frontend/gateway tokenizer_service/tokenizer tools/await_serving)
# Whose headers are the library.
COMPILED_IN=(libboost1.74-dev nlohmann-json3-dev)
CERTIFICATES=/etc/ssl/certs/ca-certificates.crt

# Copies a file of the machine to its place, through links, and says so.
take() {
  local place
  place=$(realpath "$(dirname "$1")")/$(basename "$1")
  install -D --mode="$(stat -L -c %a "$1")" "$1" "$root$place"
  echo "$1"
}

libraries() {
  ldd "$@" | awk '$2 == "=>" { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }' | sort -u
}

mkdir -p "$root"/{dev,etc,models,proc,sys,tmp,usr/{bin,lib,lib64,local/bin,share/lockstep}}
for link in bin lib lib64; do
  ln -sfn "usr/$link" "$root/$link"
done
for program in "${PROGRAMS[@]}"; do
  install --strip --mode=755 "$from/$program" "$root/usr/local/bin"
done

taken=$({
  mapfile -t files < <(libraries "${PROGRAMS[@]/#/$from/}")
  for file in "${files[@]}" "$CERTIFICATES"; do
    take "$file"
  done
})

echo "lockstep:x:$USER_ID:$USER_ID::/:/usr/sbin/nologin" > "$root/etc/passwd"
echo "lockstep:x:$USER_ID:" > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"

describe() {
  dpkg-query --show --showformat '${Package} ${Version} ${source:Package} ${Homepage}\n' "$@"
}

# A library is known by its place or by that of its link; the certificates are
# made by a package's script and belong to none.
for file in $taken; do
  { dpkg-query --search "$(realpath "$file")" "$file" 2> /dev/null || true; } | cut -d : -f 1
done | sort -u |
  { mapfile -t packages && describe "${packages[@]}"; } > "$root/usr/share/lockstep/packages"
while read -r package _; do
  install -D --mode=644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
done < "$root/usr/share/lockstep/packages"
"$(dirname "$0")/sbom.py" "$root/usr/share/lockstep/packages" <(describe "${COMPILED_IN[@]}") > "$root/usr/share/lockstep/sbom.spdx.json"
