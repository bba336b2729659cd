#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Signed apt repositories for test hosts, which reach no other. Takes no argument; what has not changed is left alone.
#
# It fills $LLMOPS_CACHE/apt (default ~/.cache/llmops-inference/apt), which every test host has as /srv/apt, read-only:
#
#   debian-nonfree    Debian 12's own packages of the driver's user space, with all that they need beyond the test host's image:
#                       deb [signed-by=KEY] file:/srv/apt/debian-nonfree bookworm main contrib non-free non-free-firmware
#   nvidia            dummy packages with NVIDIA's names and versions (nvidia_dummies.yml is their table), a flat repository like NVIDIA's:
#                       deb [signed-by=KEY] file:/srv/apt/nvidia/debian12/x86_64 /
#   nvidia-expired    the same packages, signed by a key that has expired since
#   keys              good.gpg (of the first two), expired.gpg (of the third), other.gpg (of none), each also as .asc
#
# A change of nvidia_dummies.* builds `nvidia` again; a new image of the test host (or of this script) also looks for Debian's packages again,
# with the mirrors of this machine's /etc/apt. Each time all are signed with new keys, whose secret parts are not kept.
# It needs what setup.sh brings for `controller` and `hosts`.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

suite=bookworm
components=(main contrib non-free non-free-firmware)
debian_packages=(nvidia-smi nvidia-persistenced libcuda1 libnvidia-ml1 libnvidia-ptxjitcompiler1)
apt=$cache/apt
work=$cache/apt-work
flat=debian12/x86_64

# is_made DIRECTORY CONTENT, mark DIRECTORY CONTENT: a directory tells what it was made of, last of all.
is_made() { [ "$(cat "$1/.made-of" 2>/dev/null)" = "$2" ]; }
mark() { printf '%s\n' "$2" >"$1/.made-of"; }

# replace DIRECTORY: puts the new one, made in the work directory, in the place of the one that hosts see.
replace() {
  rm -rf "${apt:?}/$1"
  mv "$work/$1" "$apt/$1"
}

# This machine's sources of Debian's suite, with all components. Those of others have suites or components of their own.
write_sources() {
  local names="($suite|$suite-updates|$suite-security)" file
  rm -rf "$work/sources.list.d"
  mkdir "$work/sources.list.d"
  for file in /etc/apt/sources.list.d/*.sources; do { cat "$file" && printf '\n\n'; } 2>/dev/null || true; done |
    awk -v suites="\nSuites:[^\n]* $names( |\n|\$)" -v components="\nComponents: ${components[*]}" '
      BEGIN { RS = ""; ORS = "\n" }
      { $0 = "\n" $0 }
      $0 ~ suites && /\nComponents:[^\n]* main( |\n|$)/ { gsub(/\nComponents:[^\n]*/, components); print }' >"$work/sources.list.d/machine.sources"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do cat "$file" 2>/dev/null || true; done |
    sed -nE "s/^(deb (\[[^]]*\] )?[^ ]+ $names) main( .*)?\$/\1 ${components[*]}/p" >"$work/sources.list.d/machine.list"
  [ -s "$work/sources.list.d/machine.sources" ] || [ -s "$work/sources.list.d/machine.list" ] ||
    die "no source of Debian's $suite in /etc/apt of this machine: the packages of debian-nonfree cannot be fetched"
}

# apt of this machine (its proxies and mirrors) with the test host's packages for installed, and without the hooks of a desktop.
host_apt() {
  apt-get --config-file "$work/apt.conf" --option Dir::State="$work/state" --option Dir::State::status="$work/status" \
    --option Dir::Cache="$work/cache" --option Dir::Etc::sourcelist=/dev/null --option Dir::Etc::sourceparts="$work/sources.list.d" \
    --option Dir::Etc::preferencesparts=/nonexistent --option APT::Sandbox::User=root --option APT::Install-Recommends=false --quiet --assume-yes "$@"
}

fetch_debian() {
  local image=$1 mounted new=$work/debian-nonfree name version architecture deb component place
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
  mounted=$(as_root podman image mount "$image")
  as_root cat "$mounted/var/lib/dpkg/status" >"$work/status"
  as_root podman image unmount "$image" >/dev/null
  write_sources
  printf '#clear %s;\n' APT::Update::Post-Invoke APT::Update::Post-Invoke-Success DPkg::Pre-Install-Pkgs DPkg::Post-Invoke >"$work/apt.conf"
  host_apt update
  host_apt install --download-only "${debian_packages[@]}"
  rm -rf "$new"
  host_apt install --simulate "${debian_packages[@]}" | sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*\[([a-z0-9]+)\].*/\1 \3 \4/p' |
    while read -r name version architecture; do
      deb=$work/cache/archives/${name}_${version/:/%3a}_$architecture.deb
      component=$(dpkg-deb --field "$deb" Section | sed -nE 's,/.*,,p')
      mkdir -p "$new/pool/${component:-main}"
      ln "$deb" "$new/pool/${component:-main}/${name}_${version#*:}_$architecture.deb"
    done
  for component in "${components[@]}"; do
    place=$new/dists/$suite/$component/binary-amd64
    mkdir -p "$place" "$new/pool/$component"
    (cd "$new" && apt-ftparchive packages "pool/$component") >"$place/Packages"
    gzip --keep --no-name "$place/Packages"
  done
  release "$new/dists/$suite" Origin=Debian Label=Debian Suite=oldstable Codename="$suite" Architectures=amd64 Components="${components[*]}"
}

build_nvidia() {
  local new=$work/nvidia
  rm -rf "$new"
  mkdir -p "$new/$flat"
  "$cache/controller/bin/python" "$root/tools/nvidia_dummies.py" "$root/tools/nvidia_dummies.yml" "$new/$flat"
  (cd "$new/$flat" && apt-ftparchive packages . >"$work/Packages" && mv "$work/Packages" . && gzip --keep --no-name Packages)
  release "$new/$flat" Origin=NVIDIA Label='NVIDIA CUDA' Architectures=amd64
}

# release DIRECTORY FIELD=VALUE...
release() {
  local directory=$1 field options=()
  shift
  for field in "$@"; do options+=(--option "APT::FTPArchive::Release::$field"); done
  apt-ftparchive "${options[@]}" release "$directory" >"$work/Release"
  mv "$work/Release" "$directory/Release"
}

# sign KEY DIRECTORY [GPG'S OPTION...]: new files, since the old ones may be links to those of another repository.
sign() {
  local key=$1 directory=$2
  shift 2
  rm -f "$directory"/InRelease{,.new} "$directory"/Release.gpg{,.new}
  gpg "$@" --local-user "$key" --clear-sign --output "$directory/InRelease.new" "$directory/Release"
  gpg "$@" --local-user "$key" --detach-sign --armor --output "$directory/Release.gpg.new" "$directory/Release"
  mv "$directory/InRelease.new" "$directory/InRelease"
  mv "$directory/Release.gpg.new" "$directory/Release.gpg"
}

# verdict KEY DIRECTORY: what apt will be told of the signature.
verdict() {
  { gpgv --status-fd 1 --keyring "$apt/keys/$1.gpg" "$2/InRelease" 2>/dev/null || true; } | sed -nE 's/^\[GNUPG:\] (GOODSIG|EXPKEYSIG|NO_PUBKEY) .*/\1/p'
}

gpg() { command gpg --batch --no-tty --quiet --passphrase '' --pinentry-mode loopback --digest-algo SHA256 "$@"; }

sign_all() {
  local name found past=(--faked-system-time '20240301T000000!')
  GNUPGHOME=$(mktemp -d)
  export GNUPGHOME
  trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
  rm -rf "$work/keys" "$work/nvidia-expired"
  mkdir "$work/keys"
  for name in good other; do gpg --quick-generate-key "llmops.inference test archive ($name)" rsa3072 sign never; done
  gpg "${past[@]}" --quick-generate-key 'llmops.inference test archive (expired)' rsa3072 sign 1y
  for name in good other expired; do
    gpg --export --output "$work/keys/$name.gpg" "=llmops.inference test archive ($name)"
    gpg --export --armor --output "$work/keys/$name.asc" "=llmops.inference test archive ($name)"
  done
  cp --archive --link "$apt/nvidia" "$work/nvidia-expired"
  replace keys
  replace nvidia-expired
  sign '=llmops.inference test archive (good)' "$apt/debian-nonfree/dists/$suite"
  sign '=llmops.inference test archive (good)' "$apt/nvidia/$flat"
  sign '=llmops.inference test archive (expired)' "$apt/nvidia-expired/$flat" "${past[@]}"
  found="$(verdict good "$apt/debian-nonfree/dists/$suite") $(verdict good "$apt/nvidia/$flat") $(verdict expired "$apt/nvidia-expired/$flat")"
  found+=" $(verdict other "$apt/nvidia/$flat")"
  [ "$found" = "GOODSIG GOODSIG EXPKEYSIG NO_PUBKEY" ] || die "gpgv says of the repositories' signatures: $found"
}

# Hosts read what is made here as another user.
umask 022
mkdir -p "$apt" "$work"
# Scenarios may start at the same time.
exec 9>"$cache/apt.lock"
flock 9

image=$("$root/tools/hosts.sh" image "$suite" 9>&-)
script=$(sha256sum <"${BASH_SOURCE[0]}")
debian_content="${script%% *} $(as_root podman image inspect --format '{{.Id}}' "$image")"
nvidia_content="${script%% *} $(cat "$root"/tools/nvidia_dummies.* | sha256sum)"
signed_content="$debian_content $nvidia_content"
is_made "$apt/keys" "$signed_content" && exit

for tool in apt-ftparchive dpkg-deb gpg gpgv; do
  type -P "$tool" >/dev/null || die "there is no $tool: run tools/setup.sh hosts"
done
if ! is_made "$apt/debian-nonfree" "$debian_content"; then
  working "Fetching Debian's packages of the driver's user space" fetch_debian "$image"
  mark "$work/debian-nonfree" "$debian_content"
  replace debian-nonfree
fi
if ! is_made "$apt/nvidia" "$nvidia_content"; then
  working "Building dummies of NVIDIA's packages" build_nvidia
  mark "$work/nvidia" "$nvidia_content"
  replace nvidia
fi
working "Signing the repositories" sign_all
mark "$apt/keys" "$signed_content"
