# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._proc import (
    Listener,
    Process,
    cgroup_pids,
    find_listeners,
    listening_ports,
    ports_of,
    read_process,
    unit_of,
)

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
PORT = 30000


def row(port, inode, state="0A", address="0100007F"):
    return f"   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000   999        0 {inode} 1 0 100 0 0 10 0\n"


@pytest.fixture(name="proc")
def fixture_proc(tmp_path):
    """A /proc with processes 1, 455 and 900, no sockets, and entries that are no processes."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(HEADER)
    (tmp_path / "self").mkdir()
    (tmp_path / "uptime").write_text("1 1")
    for pid, command in ((1, b"/sbin/init\0"), (455, b"python3\0-m\0http.server\0"), (900, b"sglang::serve\0--port\x0030000\0")):
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "cmdline").write_bytes(command)
        (tmp_path / str(pid) / "fd" / "0").symlink_to("/dev/null")
    return tmp_path


def give_socket(proc, pid, inode):
    (proc / str(pid) / "fd" / "7").symlink_to(f"socket:[{inode}]")


@pytest.mark.parametrize(
    "rows, ports",
    [
        pytest.param([], {}, id="none"),
        pytest.param([row(PORT, 11)], {"11": PORT}, id="listens"),
        pytest.param([row(PORT, 11, address="00000000"), row(22, 12, address="0A00000A")], {"11": PORT, "12": 22}, id="two"),
        pytest.param([row(PORT, 11, address="00000000000000000000000001000000")], {"11": PORT}, id="ipv6"),
        pytest.param([row(65535, 11)], {"11": 65535}, id="highest"),
        pytest.param([row(PORT, 11, state="01"), row(PORT, 12, state="06")], {}, id="connections-only"),
        pytest.param(["garbage\n", "0: 0100007F:7530 00000000:0000 0A 0 0 0 0 0\n"], {}, id="garbage"),
    ],
)
def test_listening_ports(rows, ports):
    assert listening_ports(HEADER + "".join(rows)) == ports


def test_nobody_listens(proc):
    assert find_listeners(PORT, proc) == []


def test_the_listener_and_its_command(proc):
    (proc / "net" / "tcp").write_text(HEADER + row(PORT, 4711) + row(22, 47))
    give_socket(proc, 455, 4711)
    give_socket(proc, 1, 47)
    assert find_listeners(PORT, proc) == [Listener(455, "python3 -m http.server")]


def test_ipv6_and_shared_sockets(proc):
    (proc / "net" / "tcp6").write_text(HEADER + row(PORT, 4711, address="0" * 32))
    give_socket(proc, 900, 4711)
    give_socket(proc, 455, 4711)
    assert find_listeners(PORT, proc) == [Listener(455, "python3 -m http.server"), Listener(900, "sglang::serve --port 30000")]


def test_another_port_is_another_matter(proc):
    (proc / "net" / "tcp").write_text(HEADER + row(PORT + 1, 4711) + row(PORT, 4712, state="01"))
    give_socket(proc, 455, 4711)
    give_socket(proc, 900, 4712)
    assert find_listeners(PORT, proc) == []


@pytest.mark.parametrize(
    "pids, ports",
    [([455], [22, PORT]), ([900], [PORT, PORT + 1]), ([455, 900], [22, PORT, PORT + 1]), ([1], []), ([], []), ([77777], [])],
    ids=["one", "another", "both", "no-socket", "nobody", "gone"],
)
def test_ports_of_processes(proc, pids, ports):
    (proc / "net" / "tcp").write_text(HEADER + row(PORT, 11) + row(22, 12) + row(23, 13, state="01"))
    (proc / "net" / "tcp6").write_text(HEADER + row(PORT + 1, 14))
    for pid, number, inode in ((455, 3, 11), (455, 4, 12), (455, 5, 13), (900, 3, 11), (900, 4, 14)):
        (proc / str(pid) / "fd" / str(number)).symlink_to(f"socket:[{inode}]")
    assert ports_of(pids, proc) == ports


def test_a_listener_that_cannot_be_seen(proc):
    (proc / "net" / "tcp").write_text(HEADER + row(PORT, 4711))
    assert find_listeners(PORT, proc) == [Listener(0, "a process outside this namespace")]


def test_processes_that_vanish_meanwhile(proc):
    (proc / "net" / "tcp").write_text(HEADER + row(PORT, 4711))
    give_socket(proc, 900, 4711)
    (proc / "900" / "cmdline").unlink()
    (proc / "77").mkdir()
    (proc / "455" / "fd" / "9").write_text("no link")
    assert find_listeners(PORT, proc) == [Listener(900, "")]


@pytest.mark.parametrize("family, address", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")], ids=["ipv4", "ipv6"])
def test_a_real_socket(family, address):
    command = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        port = server.getsockname()[1]
        assert find_listeners(port) == []
        server.listen()
        assert find_listeners(port) == [Listener(os.getpid(), command)]
        assert port in ports_of([os.getpid()])
    assert find_listeners(port) == []


@pytest.mark.parametrize("base", ["", "unified", "systemd"], ids=["unified", "hybrid", "v1"])
def test_processes_of_a_control_group(tmp_path, base):
    group = tmp_path / base / "system.slice" / "sglang-main.service"
    (group / "scheduler").mkdir(parents=True)
    (group / "cgroup.procs").write_text("900\n901\n")
    (group / "scheduler" / "cgroup.procs").write_text("902\n")
    other = tmp_path / base / "system.slice" / "sglang-other.service"
    other.mkdir()
    (other / "cgroup.procs").write_text("455\n")
    assert cgroup_pids("/system.slice/sglang-main.service", tmp_path) == {900, 901, 902}


@pytest.mark.parametrize("name", ["", "/system.slice/gone.service"])
def test_no_control_group_has_no_processes(tmp_path, name):
    (tmp_path / "cgroup.procs").write_text("1\n")
    assert cgroup_pids(name, tmp_path) == set()


def test_an_empty_control_group(tmp_path):
    (tmp_path / "a.service").mkdir()
    (tmp_path / "a.service" / "cgroup.procs").write_text("")
    assert cgroup_pids("/a.service", tmp_path) == set()


def test_the_control_group_of_this_process():
    entry = Path("/proc/self/cgroup").read_text().splitlines()[-1]
    name = entry.split(":", 2)[2]
    if not any((Path("/sys/fs/cgroup") / base / name.lstrip("/") / "cgroup.procs").exists() for base in ("", "unified", "systemd")):
        pytest.skip("this sandbox does not show its control group")
    assert os.getpid() in cgroup_pids(name)


@pytest.mark.parametrize(
    "text, unit",
    [
        pytest.param("0::/system.slice/sglang-main.service\n", "sglang-main.service", id="unified"),
        pytest.param("1:name=systemd:/system.slice/sglang-main.service\n0::/x\n", "sglang-main.service", id="hybrid"),
        pytest.param("0::/machine.slice/libpod.service/container/system.slice/sglang-a.service/child\n", "sglang-a.service", id="nested"),
        pytest.param("0::/user.slice/session-1.scope\n", "", id="none"),
        pytest.param(None, "", id="gone"),
    ],
)
def test_unit_of(tmp_path, text, unit):
    if text is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "cgroup").write_text(text)
    assert unit_of(7, tmp_path) == unit


def test_a_listener_is_named_without_its_secrets():
    """U09"""
    assert Listener(7, "python3 --api-key s3cret-key").named() == "pid 7: python3 --api-key ********"
    assert Listener(7, "x" * 200).named("a.service") == f"pid 7, a.service: {'x' * 120}"


# -- what a process has done ------------------------------------------------------------------------------------------------

# A real line of /proc/PID/stat behind the name: 1234 ticks in user mode, 66 in the kernel, 9 and 7 of children that are gone.
STAT = "S 1 900 900 0 -1 4194560 8291 122 3 0 1234 66 9 7 20 0 12 0 5511 8123456 2077 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n"
IO = "rchar: 99\nwchar: 98\nsyscr: 97\nsyscw: 96\nread_bytes: 4096\nwrite_bytes: 95\ncancelled_write_bytes: 94\n"
PAGE = os.sysconf("SC_PAGE_SIZE")


def write_process(proc, pid, name, **files):
    """Writes stat, statm and io of a process; None leaves a file out."""
    (proc / str(pid)).mkdir()
    for file, content in {"stat": b"%d (%s) " % (pid, name) + STAT.encode(), "statm": b"2000 500 300 1 0 700 0\n", "io": IO.encode(), **files}.items():
        if content is not None:
            (proc / str(pid) / file).write_bytes(content)


@pytest.mark.parametrize(
    "name, text",
    [
        pytest.param(b"python", "python", id="plain"),
        pytest.param(b"sglang::schedul", "sglang::schedul", id="colons"),
        pytest.param(b"tmux: server", "tmux: server", id="space"),
        pytest.param(b"(sd-pam)", "(sd-pam)", id="parentheses"),
        pytest.param(b"a) S 1 2 (b", "a) S 1 2 (b", id="like-the-rest-of-the-line"),
        pytest.param(b") ", ") ", id="only-a-closing-one"),
        pytest.param(b"", "", id="none"),
        pytest.param(b"two\nlines", "two\nlines", id="newline"),
        pytest.param("m\u00f6del".encode()[:2], "m\ufffd", id="a-letter-that-was-cut"),
    ],
)
def test_the_name_of_a_process(tmp_path, name, text):
    write_process(tmp_path, 77, name)
    assert read_process(77, tmp_path) == Process(77, text, 1300, 500 * PAGE, 4096)


@pytest.mark.parametrize(
    "files, process",
    [
        pytest.param({"io": None}, Process(77, "x", 1300, 500 * PAGE, 0), id="no-io"),
        pytest.param({"io": b""}, Process(77, "x", 1300, 500 * PAGE, 0), id="empty-io"),
        pytest.param({"io": b"rchar: 5\nxread_bytes: 9\n"}, Process(77, "x", 1300, 500 * PAGE, 0), id="io-without-the-disk"),
        pytest.param({"statm": b"0 0 0 0 0 0 0\n"}, Process(77, "x", 1300, 0, 4096), id="zombie"),
        pytest.param({"statm": None}, None, id="gone-between-two-reads"),
        pytest.param({"stat": None}, None, id="gone-as-its-folder-was-found"),
    ],
)
def test_a_process_that_is_not_wholly_seen(tmp_path, files, process):
    write_process(tmp_path, 77, b"x", **files)
    assert read_process(77, tmp_path) == process


@pytest.mark.parametrize(
    "file, error, process",
    [
        ("io", PermissionError(13, "Permission denied"), Process(77, "x", 1300, 500 * PAGE, 0)),
        ("stat", ProcessLookupError(3, "No such process"), None),
        ("statm", ProcessLookupError(3, "No such process"), None),
    ],
    ids=["io-of-another-user", "ended-while-read", "ended-after-that"],
)
def test_what_the_kernel_refuses(tmp_path, monkeypatch, file, error, process):
    read = Path.read_text

    def refuse(path, *args, **options):
        if path.name == file:
            raise error
        return read(path, *args, **options)

    write_process(tmp_path, 77, b"x")
    monkeypatch.setattr(Path, "read_text", refuse)
    assert read_process(77, tmp_path) == process


def test_nobody_has_the_number(tmp_path):
    assert read_process(77, tmp_path) is None


def test_a_real_process():
    """One that works and gives itself an awkward name."""
    name = "a) R 1 (b c"
    code = f"open('/proc/self/comm', 'w').write({name!r})\nx = bytearray(32 << 20)\nwhile sum(__import__('os').times()[:2]) < 0.1: pass\nprint(), input()"
    with subprocess.Popen([sys.executable, "-uc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        process = read_process(child.pid)
        assert (process.pid, process.name, process.is_compiler) == (child.pid, name, False)
        assert 0.09 <= process.ticks / os.sysconf("SC_CLK_TCK") < 60
        assert 32 << 20 <= process.resident_bytes < 4 << 30
        child.communicate(b"\n")
    assert read_process(child.pid) is None


@pytest.mark.parametrize(
    "name, compiles",
    [
        *((name, True) for name in ("nvcc", "cicc", "ptxas", "ptxas-blackwell", "ninja", "cc1plus", "c++", "cudafe++", "ld", "hipcc")),
        *((name, False) for name in ("python", "sglang::schedul", "bash", "", "ncc", "nvcc2", "cudafe", "asd")),
    ],
)
def test_compilers(name, compiles):
    assert Process(1, name, 0, 0, 0).is_compiler is compiles
