# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import stat

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._systemd import parse_unit, render_dropin
from ansible_collections.llmops.inference.plugins.module_utils._unit_files import SYSTEM, Places, UnitFiles

UNIT = "sglang-main.service"
GOOD = "[Service]\nExecStart=/bin/good\nUMask=0077\n"
NEW = "[Service]\nExecStart=/bin/new\n"
RELOAD = ["systemctl", "daemon-reload"]


class Bench:
    """One unit's files in a scratch directory, and the commands that were run."""

    def __init__(self, path):
        self.places = Places(path / "etc", path / "run")
        self.places.etc.mkdir()
        self.aside = path / "aside"
        self.etc = self.places.etc / UNIT
        self.manual = self.places.etc / f"{UNIT}.d"
        self.trial_unit = self.places.run / UNIT
        self.trial_dropin = self.places.run / f"{UNIT}.d" / "90-candidate.conf"
        self.commands = []
        self.answer = (0, "", "")
        self.files = UnitFiles(UNIT, self.run, self.aside, self.places)

    def run(self, command):
        self.commands.append(command)
        return self.answer

    def write(self, path, text="x"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def found(self, folder):
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture(name="bench")
def fixture_bench(tmp_path):
    return Bench(tmp_path)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_where_systemd_looks():
    assert (str(SYSTEM.etc), str(SYSTEM.run)) == ("/etc/systemd/system", "/run/systemd/system")


@pytest.mark.parametrize(
    "present, text, manual, trial, anything",
    [
        pytest.param((), "", [], False, False, id="nothing"),
        pytest.param(("etc",), GOOD, [], False, True, id="good"),
        pytest.param(("trial_unit",), "", [], True, True, id="trial-of-a-new-server"),
        pytest.param(("etc", "trial_dropin"), GOOD, [], True, True, id="trial"),
        pytest.param(("trial_dropin",), "", [], True, True, id="a-dropin-without-a-unit"),
        pytest.param(("etc", "by_hand"), GOOD, ["10-a.conf", "override.conf"], False, True, id="by-hand"),
    ],
)
def test_what_there_is(bench, present, text, manual, trial, anything):
    if "by_hand" in present:
        for name in ("override.conf", "10-a.conf", "override.conf.bak", "notes.txt"):
            bench.write(bench.manual / name)
    for name in set(present) - {"by_hand"}:
        bench.write(getattr(bench, name), GOOD)
    files = bench.files
    assert (files.text, [path.name for path in files.manual], files.trial, files.any) == (text, manual, trial, anything)
    assert (files.etc, files.trial_path) == (bench.etc, bench.trial_dropin)


def test_a_masked_unit_has_no_text(bench):
    bench.etc.symlink_to("/dev/null")
    assert bench.files.text == ""
    bench.files.hold(NEW)
    assert not bench.etc.is_symlink() and bench.etc.read_text() == NEW


def test_reload(bench):
    bench.files.reload()
    assert bench.commands == [RELOAD]
    bench.answer = (1, "", "Failed to connect to bus")
    with pytest.raises(HostError, match="systemctl daemon-reload failed with status 1: Failed to connect to bus"):
        bench.files.reload()


@pytest.mark.parametrize("before, written", [(None, True), (GOOD, True), (NEW, False)], ids=["none", "another", "the-same"])
def test_hold(bench, before, written):
    if before is not None:
        bench.write(bench.etc, before)
        os.utime(bench.etc, (5, 5))
    bench.files.hold(NEW)
    assert bench.etc.read_text() == NEW
    assert (bench.etc.stat().st_mtime != 5) is written
    assert not written or mode(bench.etc) == 0o644
    assert bench.found(bench.places.etc) == [UNIT], "no scratch file is left"
    assert bench.commands == [], "the caller reloads"


def test_a_trial_beside_a_good_unit(bench):
    bench.write(bench.etc, GOOD)
    bench.files.begin_trial(NEW)
    assert bench.trial_dropin.read_text() == render_dropin(parse_unit(GOOD), parse_unit(NEW))
    assert (mode(bench.trial_dropin), bench.found(bench.places.run)) == (0o644, [f"{UNIT}.d/90-candidate.conf"])
    assert (bench.etc.read_text(), bench.commands) == (GOOD, [RELOAD])


def test_a_trial_of_a_new_server(bench):
    bench.files.begin_trial(NEW)
    assert (bench.trial_unit.read_text(), mode(bench.trial_unit)) == (NEW, 0o644)
    assert (bench.found(bench.places.run), bench.found(bench.places.etc), bench.commands) == ([UNIT], [], [RELOAD])


def test_a_trial_replaces_an_interrupted_one(bench):
    bench.write(bench.etc, GOOD)
    bench.write(bench.trial_dropin, "[Service]\nExecStart=/bin/old\n")
    bench.files.begin_trial(NEW)
    assert "/bin/old" not in bench.trial_dropin.read_text() and "ExecStart=/bin/new" in bench.trial_dropin.read_text()


def test_a_trial_does_not_see_what_was_added_by_hand(bench):
    bench.write(bench.etc, GOOD)
    bench.write(bench.manual / "99-override.conf")
    bench.files.begin_trial(NEW)
    assert bench.files.manual == [] and len(bench.found(bench.aside)) == 1


@pytest.mark.parametrize("left", [(), ("trial_unit",), ("trial_dropin",), ("trial_unit", "trial_dropin")], ids=["none", "unit", "dropin", "both"])
def test_the_end_of_a_trial(bench, left):
    bench.write(bench.etc, GOOD)
    bench.write(bench.manual / "override.conf")
    other = bench.write(bench.places.run / "sglang-other.service")
    for name in left:
        bench.write(getattr(bench, name))
    bench.files.end_trial()
    assert not bench.files.trial and other.exists()
    assert bench.found(bench.places.etc) == [UNIT, f"{UNIT}.d/override.conf"]
    assert bench.commands == [RELOAD]


# -- what somebody added by hand ----------------------------------------------------------------------------------------------


def test_set_aside_and_put_back(bench):
    bench.write(bench.manual / "override.conf", "one")
    bench.write(bench.manual / "50-b.conf", "two")
    bench.write(bench.manual / "notes.txt", "three")
    (bench.manual / "masked.conf").symlink_to("/dev/null")
    bench.files.set_aside()
    assert bench.found(bench.manual) == ["notes.txt"]
    (folder,) = bench.aside.iterdir()
    assert (bench.found(folder), (folder / "override.conf").read_text(), mode(folder)) == (["50-b.conf", "masked.conf", "override.conf"], "one", 0o700)
    bench.files.put_back()
    assert bench.found(bench.manual) == ["50-b.conf", "masked.conf", "notes.txt", "override.conf"]
    assert ((bench.manual / "50-b.conf").read_text(), os.readlink(bench.manual / "masked.conf")) == ("two", "/dev/null")
    assert bench.found(bench.aside) == []


def test_nothing_to_set_aside(bench):
    bench.files.set_aside()
    bench.files.put_back()
    assert not bench.aside.exists()


def test_a_disk_that_fills_up_meanwhile(bench, monkeypatch):
    """What was not moved stays where it is, and what was comes back."""
    for name in ("a.conf", "b.conf", "c.conf"):
        bench.write(bench.manual / name, name)
    move = shutil.move

    def full(source, target):
        if source.endswith("b.conf"):
            raise OSError(28, "No space left on device")
        return move(source, target)

    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(OSError, match="No space left"):
        bench.files.set_aside()
    assert bench.found(bench.manual) == ["b.conf", "c.conf"]
    bench.files.put_back()
    assert bench.found(bench.manual) == ["a.conf", "b.conf", "c.conf"]


@pytest.mark.parametrize(
    "seconds, before",
    [
        pytest.param((99.0,), True, id="before-the-start"),
        pytest.param((101.0,), False, id="after-it"),
        pytest.param((100.0,), False, id="at-it"),
        pytest.param((101.0, 99.0), True, id="one-of-two"),
        pytest.param((), False, id="none"),
    ],
)
def test_edited_before(bench, seconds, before):
    edited = []
    for number, moment in enumerate(seconds):
        edited.append(bench.write(bench.manual / f"{number}.conf"))
        os.utime(edited[-1], (moment, moment))
    assert bench.files.edited_before(100.0, [*edited, bench.manual / "gone.conf"]) is before


# -- taking it away -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("present", [(), ("etc",), ("trial_unit",), ("etc", "trial_dropin"), ("etc", "trial_unit", "trial_dropin")])
def test_remove(bench, present):
    for name in present:
        bench.write(getattr(bench, name))
    bench.write(bench.manual / "override.conf")
    other = bench.write(bench.places.etc / "sglang-other.service.d" / "override.conf")
    bench.files.remove()
    assert bench.found(bench.places.etc) == [str(other.relative_to(bench.places.etc))]
    assert not bench.files.any and not bench.manual.exists() and not bench.trial_dropin.parent.exists()
    assert bench.commands == [RELOAD]
