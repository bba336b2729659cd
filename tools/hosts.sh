#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Real systemd hosts on podman, for the sandbox inventory and for Molecule.
#
#   hosts.sh image [SUITE]              build the image (bookworm unless told), once per content of this folder, and print its name
#   hosts.sh up NAME ADDRESS [SUITE]    start a host and wait until its systemd runs
#   hosts.sh bare NAME [SUITE]          start a container of the same image without systemd and without a network
#   hosts.sh down NAME...               remove hosts
#   hosts.sh down-all                   remove every host made by this script, its network and its forwarders
#   hosts.sh forward NAME PORT          answer on this machine's 127.0.0.1:PORT with the host's 127.0.0.1:PORT
#   hosts.sh run COMMAND...             run a command where the hosts' addresses are reachable
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

network=llmops
subnet=10.89.80
namespace=/run/netns/llmops
label=llmops.inference=host
state=$cache/hosts
mkdir -p "$state/opt-sglang" "$cache/wheelhouse" "$cache/models" "$cache/apt"

# A machine whose own PID 1 is systemd needs none of the special settings.
if [ -d /run/systemd/system ]; then
  special=false
else
  special=true
  export CONTAINERS_CONF=$root/tools/hosts/containers.conf
fi

# On a machine without systemd the hosts' network lives in a namespace without an uplink: no packet to a host's address can
# leave the machine, and whatever talks to such an address has to be inside.
in_network() {
  if $special; then
    as_root test -e "$namespace" || as_root ip netns add "$(basename "$namespace")"
    as_root ip -n "$(basename "$namespace")" link set lo up
    as_root nsenter --net="$namespace" env "CONTAINERS_CONF=$CONTAINERS_CONF" "$@"
  else
    as_root "$@"
  fi
}

image_name() {
  local suite=$1
  echo "localhost/llmops-host-$suite:$(cat "$root/tools/hosts.sh" "$root"/tools/hosts/* | sha256sum | cut -c -12)"
}

# The hooks' "$1" is for mmdebstrap's shell.
# shellcheck disable=SC2016
build_image() {
  local suite=$1 image=$2 sources packages
  packages=systemd,systemd-sysv,libpam-systemd,dbus,python3,python3-venv,python3-apt,ca-certificates,iproute2,sudo,curl,procps,openssh-server
  sources=$(mktemp --suffix=.sources)
  cp /etc/apt/sources.list.d/debian.sources "$sources" 2>/dev/null || cp "$root/tools/hosts/debian.sources" "$sources"
  sed -i "s/bookworm/$suite/g" "$sources"
  TMPDIR=/dev/shm mmdebstrap --variant=minbase --mode=root --format=tar \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include="$packages" \
    --customize-hook="copy-in $root/tools/hosts/host-init /usr/sbin" \
    --customize-hook='chroot "$1" chmod 755 /usr/sbin/host-init' \
    --customize-hook='chroot "$1" useradd --create-home --shell /bin/bash ops' \
    --customize-hook='echo "ops:ops-password" | chroot "$1" chpasswd' \
    --customize-hook='echo "ops ALL=(ALL) ALL" > "$1/etc/sudoers.d/ops"' \
    --customize-hook='chroot "$1" systemctl mask ssh.service getty.target console-getty.service systemd-modules-load.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer' \
    --customize-hook=': > "$1/etc/machine-id"' \
    "$suite" - "$sources" |
    podman import --quiet --change 'STOPSIGNAL SIGRTMIN+3' --change 'CMD ["/usr/sbin/host-init"]' - "$image"
  rm -f "$sources"
}

ensure_image() {
  local suite=${1:-bookworm} image
  image=$(image_name "$suite")
  as_root podman image exists "$image" || working "Building the test host's image ($suite, about a minute)" build_image "$suite" "$image"
}

up() {
  local name=$1 address=$subnet.$2 suite=${3:-bookworm}
  ensure_image "$suite"
  if as_root podman container exists "$name"; then
    [ "$(as_root podman container inspect --format '{{.State.Running}} {{.ImageName}}' "$name")" = "true $(image_name "$suite")" ] && return
    in_network podman rm --force --time 2 "$name" >/dev/null
  fi
  in_network podman network exists "$network" ||
    in_network podman network create --subnet "$subnet.0/24" --gateway "$subnet.1" --disable-dns "$network" >/dev/null
  local security=(--cap-add=ALL --cap-drop=SYS_MODULE --security-opt seccomp=unconfined --security-opt unmask=ALL --cgroupns=private)
  # Without an uplink, every look-up would wait for a name server that cannot answer.
  if $special; then security+=(--dns 127.0.0.1); fi
  in_network podman run --detach --name "$name" --hostname "$name" --label "$label" --network "$network:ip=$address" \
    "${security[@]}" --systemd=always --stop-signal=SIGRTMIN+3 --shm-size=1g \
    --volume "$state/opt-sglang:/opt/sglang" --volume "$cache/wheelhouse:/srv/wheelhouse:ro" --volume "$cache/models:/srv/models:ro" \
    --volume "$cache/apt:/srv/apt:ro" "$(image_name "$suite")" /usr/sbin/host-init >/dev/null
  local deadline=$((SECONDS + 60)) status
  until status=$(as_root podman exec "$name" systemctl is-system-running 2>/dev/null) || [ "$status" = degraded ]; do
    ((SECONDS < deadline)) || die "host $name: systemd did not come up within 60 s (it says: ${status:-nothing})"
    sleep 0.3
  done
  say "host $name ($address) is up: systemd $(as_root podman exec "$name" systemctl --version | awk 'NR==1 {print $2}'), $status"
}

bare() {
  local name=$1 suite=${2:-bookworm}
  ensure_image "$suite"
  in_network podman run --detach --name "$name" --label "$label" --network none --security-opt seccomp=unconfined --cgroupns=private \
    --volume "$cache/apt:/srv/apt:ro" "$(image_name "$suite")" /bin/sleep 3600 >/dev/null
}

down() {
  local name
  for name in "$@"; do
    stop_forwarder "$name"
    as_root podman container exists "$name" && in_network podman rm --force --time 2 "$name" >/dev/null
    say "host $name is gone"
  done
}

# A forwarder is a socat of this machine; each connection enters the host's network namespace, so nothing crosses the bridge.
stop_forwarder() {
  local pidfile pid
  for pidfile in "$state/forward-$1-"*.pid; do
    [ -e "$pidfile" ] || continue
    pid=$(cat "$pidfile")
    if as_root grep -qs "socat" "/proc/$pid/cmdline"; then
      as_root kill "$pid"
      while as_root kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    fi
    rm -f "$pidfile"
  done
}

# shellcheck disable=SC2016
forward() {
  local name=$1 port=$2 target
  stop_forwarder "$name"
  target=$(as_root podman container inspect --format '{{.State.Pid}}' "$name")
  ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || die "port $port of this machine is taken: the forwarder into host $name cannot listen"
  as_root setsid --fork sh -c 'echo $$ > "$1"; exec socat -t 600 "TCP-LISTEN:$2,bind=127.0.0.1,fork,reuseaddr" "EXEC:nsenter --net=/proc/$3/ns/net socat -t 600 STDIO TCP\\:127.0.0.1\\:$2"' \
    forwarder "$state/forward-$name-$port.pid" "$port" "$target" </dev/null >/dev/null 2>&1
}

case ${1:-} in
  image)
    ensure_image "${2:-bookworm}"
    image_name "${2:-bookworm}"
    ;;
  up) up "$2" "$3" "${4:-}" ;;
  bare) bare "$2" "${3:-}" ;;
  down) shift; down "$@" ;;
  down-all)
    # shellcheck disable=SC2046
    down $(as_root podman ps --all --filter "label=$label" --format '{{.Names}}')
    if in_network podman network exists "$network"; then in_network podman network rm --force "$network" >/dev/null; fi
    if $special; then as_root ip netns delete "$(basename "$namespace")"; fi
    ;;
  forward) forward "$2" "$3" ;;
  run) shift; in_network "$@" ;;
  *) sed -n '4,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
