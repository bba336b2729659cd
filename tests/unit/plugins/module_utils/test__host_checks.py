# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._host_checks import hidden_paths, judge_ports, judge_readable
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener, cgroup_pids, find_listeners, unit_of
from ansible_collections.llmops.inference.plugins.module_utils._redact import MASK
from ansible_collections.llmops.inference.plugins.module_utils._rules_ports import Port
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__proc import HEADER, row

PORTS = (Port("the server", 30000, "port"), Port("NCCL", 30001, "nccl_port"))
UNITS = {5: "", 900: "sglang-main.service", 455: "sglang-other.service", 0: "", 456: ""}
GROUP = "/system.slice/sglang-main.service"


def ports(listening, own=(), ports_of=PORTS):
    return judge_ports(ports_of, GROUP, lambda number: listening.get(number, []), lambda group: {*own} if group == GROUP else set(), UNITS.get)


@pytest.mark.parametrize(
    "listening, own, held",
    [
        pytest.param({}, [], [], id="free"),
        pytest.param({30000: [Listener(900, "own")]}, [900], [], id="own"),
        pytest.param({30000: [Listener(900, "own")]}, [901], ["port"], id="another"),
        pytest.param({30000: [Listener(900, "own"), Listener(5, "x")]}, [900], ["port"], id="own-and-another"),
        pytest.param({30001: [Listener(5, "x")]}, [], ["nccl_port"], id="a-derived-one"),
        pytest.param({30000: [Listener(5, "x")], 30001: [Listener(5, "x")]}, [], ["port", "nccl_port"], id="both"),
        pytest.param({30002: [Listener(5, "x")]}, [], [], id="not-ours"),
        pytest.param({30000: [Listener(0, "a process outside this namespace")]}, [900], ["port"], id="cannot-be-seen"),
    ],
)
def test_judge_ports(listening, own, held):
    """N08"""
    found = ports(listening, own)
    assert [finding.fields for finding in found] == [(name,) for name in held]
    assert {(finding.code, finding.severity) for finding in found} <= {("port_in_use", "error")}


def test_who_holds_a_port_is_named():
    """N08: the first that is not ours; a secret of it is not shown (U09)."""
    (finding,) = ports({30000: [Listener(900, "own"), Listener(455, f"python3 --api-key s3cret {'x' * 200}"), Listener(456, "y")]}, [900])
    shown = f"python3 --api-key {MASK} {'x' * 200}"[:120]
    assert finding.text == f"port 30000 is held by another process (pid 455, sglang-other.service: {shown})"
    assert "sglang_server_port" in finding.hint


def test_what_a_derived_port_is_for_is_told():
    (finding,) = ports({30001: [Listener(5, "x")]})
    assert finding.text == "port 30001 is held by another process (pid 5: x); this server needs it for NCCL"


@pytest.mark.parametrize("own", [True, False])
def test_ports_of_a_machine(tmp_path, own):
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "net").mkdir(parents=True)
    (proc / "net" / "tcp").write_text(HEADER + row(30000, 4711))
    (proc / "455" / "fd").mkdir(parents=True)
    (proc / "455" / "fd" / "3").symlink_to("socket:[4711]")
    (proc / "455" / "cmdline").write_bytes(b"python3\0-m\0http.server\0")
    group = cgroups / GROUP.lstrip("/")
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("455\n" if own else "456\n")
    partial = functools.partial
    found = judge_ports(PORTS, GROUP, partial(find_listeners, proc=proc), partial(cgroup_pids, root=cgroups), partial(unit_of, proc=proc))
    texts = [finding.text for finding in found]
    assert texts == ([] if own else ["port 30000 is held by another process (pid 455: python3 -m http.server)"])


def unit(**directives):
    return {"Unit": [("ProtectHome", "yes"), ("PrivateTmp", "yes")], "Service": list(directives.items())}


@pytest.mark.parametrize(
    "directives, hidden",
    [
        ({}, []),
        ({"ProtectHome": "yes"}, ["/home/m", "/home", "/root/m", "/run/user/0/m"]),
        ({"ProtectHome": "TRUE"}, ["/home/m", "/home", "/root/m", "/run/user/0/m"]),
        ({"ProtectHome": "1"}, ["/home/m", "/home", "/root/m", "/run/user/0/m"]),
        ({"ProtectHome": "on"}, ["/home/m", "/home", "/root/m", "/run/user/0/m"]),
        ({"ProtectHome": "tmpfs"}, ["/home/m", "/home", "/root/m", "/run/user/0/m"]),
        ({"ProtectHome": "read-only"}, []),
        ({"ProtectHome": "no"}, []),
        ({"PrivateTmp": "yes"}, ["/tmp/m", "/var/tmp/m"]),
        ({"PrivateTmp": "tmpfs"}, []),
        ({"PrivateTmp": "false"}, []),
        ({"PrivateTmp": "yes", "ProtectHome": "yes"}, ["/home/m", "/home", "/root/m", "/run/user/0/m", "/tmp/m", "/var/tmp/m"]),
    ],
)
def test_hidden_paths(directives, hidden):
    paths = ["/home/m", "/home", "/homes/m", "/root/m", "/run/user/0/m", "/tmp/m", "/tmpx", "/var/tmp/m", "/srv/home/m", "/srv/tmp"]
    found = hidden_paths({path: f"field of {path}" for path in paths}, unit(**directives))
    assert [finding.text.split()[0] for finding in found] == hidden
    assert [finding.fields for finding in found] == [(f"field of {path}",) for path in hidden]
    assert all((finding.code, finding.severity) == ("path_hidden", "error") for finding in found)


def test_what_hides_a_path_is_named():
    (finding,) = hidden_paths({"/tmp/m": "model_path"}, unit(PrivateTmp="Yes"))
    assert finding.text == "/tmp/m is hidden from the server by PrivateTmp=Yes of its unit"
    assert (finding.hint, finding.source) == ("move it elsewhere, or set PrivateTmp in sglang_server_unit_options", "systemd.exec(5), PrivateTmp=")
    assert finding.fields == ("model_path",)
    assert hidden_paths({"/tmp/m": "model_path"}, {}) == []


@dataclass
class Find:
    """Plays run_command."""

    output: str = ""
    error: str = ""
    status: int = 0
    commands: tuple = ()

    def __call__(self, command):
        self.commands += (command,)
        return self.status, self.output, self.error


@pytest.fixture(name="paths")
def fixture_paths(tmp_path):
    """Two paths that are there, and their fields."""
    paths = {str(tmp_path / name): f"field_{name}" for name in "ab"}
    for path in paths:
        Path(path).touch()
    return paths


def test_everything_can_be_read(paths):
    find = Find()
    assert judge_readable(paths, "sglang", find) == []
    assert find.commands == (["runuser", "-u", "sglang", "--", "env", "LC_ALL=C", "find", "-L", *paths, "-maxdepth", "1", "!", "-readable", "-print"],)


DENIED = "find: '/m': Permission denied\n"


@pytest.mark.parametrize(
    "find, named",
    [
        pytest.param(Find("/m/a\n"), "/m/a", id="a-file"),
        pytest.param(Find("", DENIED, 1), "/m", id="a-directory-above"),
        pytest.param(Find("/m\n", DENIED, 1), "/m", id="once"),
        pytest.param(Find("/m/a\n/m/b\n", DENIED, 1), "/m/a, /m/b, /m", id="three"),
        pytest.param(Find("".join(f"/m/{name}\n" for name in "abcde")), "/m/a, /m/b, /m/c and 2 more", id="more"),
        pytest.param(Find("/m/a\n", "runuser: warning\n"), "/m/a", id="beside-a-warning"),
    ],
)
def test_what_cannot_be_read(paths, find, named):
    (finding,) = judge_readable(paths, "sglang", find)
    assert (finding.code, finding.severity, finding.text) == ("path_unreadable", "error", f"the service user sglang cannot read {named}")


@pytest.mark.parametrize(
    "output, error, fields",
    [
        ("{b}\n", "", ("field_b",)),
        ("{b}/inner\n{a}\n", "", ("field_a", "field_b")),
        ("{a}/1\n{a}/2\n", "", ("field_a",)),
        ("", "find: '{a}/inner': Permission denied\n", ("field_a",)),
        ("{a}more\n", "", ()),
    ],
    ids=["itself", "in-the-order-of-the-candidate", "once", "refused", "another-of-the-same-start"],
)
def test_the_fields_of_what_cannot_be_read(paths, output, error, fields):
    names = {Path(path).name: path for path in paths}
    (finding,) = judge_readable(paths, "sglang", Find(output.format(**names), error.format(**names)))
    assert finding.fields == fields


@pytest.mark.parametrize("inner", ["", "/config.json"])
def test_a_path_that_ends_in_a_slash(tmp_path, inner):
    """find prints what it was given, and joins without a second slash."""
    (finding,) = judge_readable({f"{tmp_path}/": "model_path"}, "sglang", Find(f"{tmp_path}{inner or '/'}\n"))
    assert finding.fields == ("model_path",)


@pytest.mark.parametrize(
    "error",
    ["runuser: user sglang does not exist", "find: '/m': Input/output error", "Permission denied", "runuser: cannot set groups: Operation not permitted"],
    ids=["no-user", "disk", "without-a-path", "no-root"],
)
def test_what_could_not_be_told(paths, error):
    (finding,) = judge_readable(paths, "sglang", Find("", f"{error}\n", 1))
    assert (finding.code, finding.severity) == ("path_unknown", "warning")
    assert finding.text == f"whether sglang can read {', '.join(paths)} could not be told: {error}"


def test_a_long_complaint_is_cut(paths):
    (finding,) = judge_readable(paths, "sglang", Find("", "x" * 300))
    assert finding.text.endswith(f"could not be told: {'x' * 200}")


def test_a_missing_path_needs_no_user(tmp_path):
    find = Find()
    (finding,) = judge_readable({f"{tmp_path}/gone": "model_path"}, "sglang", find)
    assert (finding.code, finding.severity, finding.text) == ("path_missing", "error", f"{tmp_path}/gone does not exist on this host")
    assert finding.fields == ("model_path",)
    assert find.commands == (), "nothing to ask"
    assert judge_readable({}, "sglang", find) == [] and find.commands == ()


def test_missing_and_unreadable(paths, tmp_path):
    find = Find("/m/a\n")
    found = judge_readable({**paths, f"{tmp_path}/gone": "chat_template"}, "sglang", find)
    assert [finding.code for finding in found] == ["path_missing", "path_unreadable"]
    assert f"{tmp_path}/gone" not in find.commands[0]
