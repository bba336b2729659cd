#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Brings what a checkout needs, and nothing twice: run it again after an interruption and it goes on where it was.
#   setup.sh controller     Ansible, linters and test tools in a virtual environment, and the collections we depend on
#   setup.sh newest         the newest ansible-core, where a newer Python is present
#   setup.sh hosts          podman, and what builds the test hosts' image and their apt repositories
#   setup.sh wheelhouse [VERSION...]   the cpu engines' wheels, which hosts without an index install from
# Everything goes to $LLMOPS_CACHE (default ~/.cache/llmops-inference). Debian or Ubuntu, as root or with sudo.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

apt_install() {
  local missing=() package
  for package in "$@"; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || die "this machine has no apt-get: install ${missing[*]} by hand"
  [ -n "$(find /var/lib/apt/lists -name '*_Packages*' -mmin -1440 -print -quit)" ] || working "Updating the package lists" as_root apt-get update -qq
  working "Installing ${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# make_environment NAME PYTHON LOCK: a virtual environment named by its lock's content, complete when its marker is there.
make_environment() {
  local name=$1 python=$2 lock=$3 path
  path=$cache/$name-$(sha256sum <"$lock" | cut -c -12)
  if [ ! -e "$path/.complete" ]; then
    rm -rf "$path"
    "$python" -c 'import venv, ensurepip' 2>/dev/null || apt_install python3-venv
    working "Making the $name environment" "$python" -m venv "$path"
    working "Installing uv for $name" "$path/bin/python" -m pip install --quiet "$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' "$lock")"
    working "Installing $name" "$path/bin/uv" pip install --quiet --python "$path/bin/python" --require-hashes --requirement "$lock"
    touch "$path/.complete"
  fi
  ln -sfn "$path" "$cache/$name"
}

# python_of MINIMUM: an interpreter at least that new, the one on PATH first, then pyenv's.
python_of() {
  local candidate
  for candidate in python3 python3.{15,14,13,12,11} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
    if "$candidate" -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$1'.split('.'))))" 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

setup_controller() {
  local python wanted collection missing=() scratch
  python=$(python_of 3.11)
  if [ -z "$python" ]; then
    apt_install python3 python3-venv
    python=$(python_of 3.11)
  fi
  [ -n "$python" ] || die "ansible-core 2.19 needs Python 3.11 or newer on the controller, and there is none"
  make_environment controller "$python" "$root/requirements/controller.txt"
  mapfile -t wanted < <(grep -vE '^(#|ansible==)' "$root/requirements/collections.txt")
  for collection in "${wanted[@]}"; do
    [ -e "$cache/collections/ansible_collections/${collection/.//}/MANIFEST.json" ] || missing+=("$collection")
  done
  ((${#missing[@]})) || return 0
  scratch=$cache/download
  mkdir -p "$scratch"
  working "Downloading the package of collections" "$cache/controller/bin/python" -m pip download --quiet --no-deps --only-binary :all: \
    --dest "$scratch" "$(grep ^ansible== "$root/requirements/collections.txt")"
  working "Unpacking ${missing[*]}" "$cache/controller/bin/python" "$root/tools/unpack_collections.py" "$scratch" "$cache/collections" "${missing[@]}"
  rm -rf "$scratch"
}

setup_newest() {
  local python
  python=$(python_of 3.13)
  if [ -z "$python" ]; then
    say "no Python 3.13 or newer on this machine: the newest ansible-core is not tried"
    return 0
  fi
  make_environment newest "$python" "$root/requirements/newest.txt"
}

setup_hosts() {
  apt_install podman runc mmdebstrap netavark aardvark-dns conmon uidmap iptables iproute2 socat openssh-client apt-utils gnupg
}

setup_wheelhouse() {
  local version lock mark
  for version in "${@:-0.5.23}"; do
    lock=$root/roles/sglang_engine/files/locks/$version-cpu-py311.txt
    mark=$cache/wheelhouse/.$(sha256sum <"$lock" | cut -c -12)
    [ ! -e "$mark" ] || continue
    mkdir -p "$cache/wheelhouse"
    working "Downloading the wheels of SGLang $version (cpu, about 800 MB)" "$cache/controller/bin/python" -m pip download --quiet --no-deps --require-hashes \
      --only-binary :all: --dest "$cache/wheelhouse" --requirement "$lock"
    working "Downloading uv for the hosts" "$cache/controller/bin/python" -m pip download --quiet --no-deps --dest "$cache/wheelhouse" \
      "uv==$(sed -n 's/^sglang_engine_uv_version: //p' "$root/roles/sglang_engine/defaults/main.yml")"
    touch "$mark"
  done
  [ -e "$cache/models/tiny-qwen3/config.json" ] || "$cache/controller/bin/python" "$root/tools/make_tiny_model.py" "$cache/models/tiny-qwen3"
}

case ${1:-} in
  controller | newest | hosts) "setup_$1" ;;
  wheelhouse) shift; setup_wheelhouse "$@" ;;
  *) sed -n '5,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
