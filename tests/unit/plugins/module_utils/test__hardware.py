# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files
from ansible_collections.llmops.inference.plugins.module_utils._hardware import GpuHost, GpuSampler, hardware, throttles

CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC 7402P 24-Core Processor\nprocessor\t: 1\nmodel name\t: AMD EPYC 7402P 24-Core Processor\n"
MACHINE = ("x86_64", 48, "6.1.0-25-amd64")
UNIT = "sglang-main.service"


def gpu(index, *units, name="NVIDIA RTX A6000"):
    processes = [{"pid": 100 + i, "unit": unit} for i, unit in enumerate(units)]
    return {"index": index, "name": name, "memory_total_mib": 49140, "power_limit_w": 300.0, "processes": processes}


def link(kind, *gpus):
    return {"kind": kind, "gpus": list(gpus)}


@pytest.fixture(name="measured")
def fixture_measured(tmp_path, monkeypatch):
    """What the record says of a host with these GPUs and links."""

    def found(gpus, links=(), cpuinfo=CPUINFO):
        facts = {"gpus": gpus, "links": list(links), "driver": {"version": "580.159.04"}}
        monkeypatch.setattr(GpuHost, "collect", lambda self: facts)
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc" / "cpuinfo").write_text(cpuinfo)
        return hardware(lambda *words: None, Files(str(tmp_path)), UNIT, MACHINE)

    return found


LINKS = [link("NV18", 0, 1), link("PHB", 0, 2), link("SYS", 1, 2)]


@pytest.mark.parametrize(
    "gpus, links, number, kinds",
    [
        pytest.param([], [], 0, "", id="none"),
        pytest.param([gpu(0, UNIT)], [], 1, "", id="one"),
        pytest.param([gpu(0, UNIT), gpu(1, UNIT), gpu(2)], LINKS, 2, "NV18", id="its-own"),
        pytest.param([gpu(0), gpu(1), gpu(2)], LINKS, 3, "NV18 PHB SYS", id="all-where-it-cannot-be-seen"),
        pytest.param([gpu(0, "other.service"), gpu(1, UNIT, "other.service")], LINKS[:1], 1, "", id="shared-with-another"),
    ],
)
def test_the_gpus_of_the_server(measured, gpus, links, number, kinds):
    found = measured(gpus, links)
    assert found["gpus"] == [{"name": "NVIDIA RTX A6000", "memory_mib": 49140, "power_limit_w": 300.0}] * number
    assert (found["links"], found["driver"]) == (kinds, "580.159.04" if number else "")


@pytest.mark.parametrize("cpuinfo, cpu", [(CPUINFO, "AMD EPYC 7402P 24-Core Processor"), ("", "x86_64"), ("processor : 0\nBogoMIPS : 50\n", "x86_64")])
def test_the_processors(measured, cpuinfo, cpu):
    found = measured([], cpuinfo=cpuinfo)
    assert (found["cpu"], found["cpus"], found["kernel"]) == (cpu, 48, "6.1.0-25-amd64")


def test_a_real_host_without_gpus(tmp_path):
    found = hardware(lambda *words: None, Files(str(tmp_path)), UNIT, MACHINE)
    assert found == {"gpus": [], "links": "", "driver": "", "cpu": "x86_64", "cpus": 48, "kernel": "6.1.0-25-amd64"}


@pytest.mark.parametrize(
    "mask, expected",
    [
        pytest.param("0x0000000000000000", [], id="none"),
        pytest.param("0x0000000000000001", [], id="idle"),
        pytest.param("0x0000000000000002", [], id="fixed-clocks"),
        pytest.param("0x0000000000000004", ["sw_power_cap"], id="power"),
        pytest.param("0x00000000000000EC", ["sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"], id="all-at-once"),
        pytest.param("0x10", ["sync_boost"], id="short"),
        pytest.param("", [], id="empty"),
        pytest.param("[N/A]", [], id="not-told"),
        pytest.param("Active", [], id="a-word"),
    ],
)
def test_throttle_reasons(mask, expected):
    assert throttles(mask) == expected


class Smi:
    """nvidia-smi, whose answers come one after the other."""

    def __init__(self, *answers, unknown=()):
        self.answers = list(answers)
        self.unknown = unknown
        self.asked = []

    def ask(self, *words):
        self.asked.append(words)
        if any(name in words[1] for name in self.unknown):
            return 2, 'Field "clocks_event_reasons.active" is not a valid field to query.'
        return self.answers.pop(0)


def sample(*rows):
    return 0, "".join(f"{row}\n" for row in rows)


def test_samples_of_two_gpus():
    smi = Smi(
        sample("0, 1980, 2619, 420.5, 51, 0x0000000000000000", "1, 1980, 2619, 380.0, 50, 0x0000000000000004"),
        sample("0, 1700, 2619, 700.1, 71, 0x0000000000000004", "1, 1990, 2619, 390.0, 49, 0x0000000000000000"),
        sample("0, 1900, 2619, 690.0, 70, 0x0000000000000024", "1, 2000, 2619, 370.0, 48, 0x0000000000000000"),
    )
    sampler = GpuSampler(smi.ask, True)
    for _time in range(3):
        sampler.sample()
    first, second = sampler.take()
    assert first == {
        "index": 0,
        "clock_mhz": 1900.0,
        "memory_clock_mhz": 2619.0,
        "power_w": 700.1,
        "temperature_c": 71.0,
        "throttle": ["sw_power_cap", "sw_thermal_slowdown"],
    }
    assert (second["clock_mhz"], second["power_w"], second["throttle"]) == (1990.0, 390.0, ["sw_power_cap"])
    assert sampler.take() is None and sampler.trouble == "", "a repetition begins anew"


def test_gpus_are_in_order_of_their_numbers():
    sampler = GpuSampler(Smi(sample(*(f"{index}, 1, 1, 1, 1, 0x0" for index in (10, 2, 0)))).ask, True)
    sampler.sample()
    assert [entry["index"] for entry in sampler.take()] == [0, 2, 10]


def test_a_gpu_that_does_not_tell_everything():
    sampler = GpuSampler(Smi(sample("0, 1980, [N/A], [Not Supported], 51, [N/A]")).ask, True)
    sampler.sample()
    assert sampler.take() == [{"index": 0, "clock_mhz": 1980.0, "memory_clock_mhz": None, "power_w": None, "temperature_c": 51.0, "throttle": []}]


def test_drivers_before_535_have_another_name_for_the_reasons():
    smi = Smi(sample("0, 1, 1, 1, 1, 0x4"), sample("0, 1, 1, 1, 1, 0x4"), unknown=("event_reasons",))
    sampler = GpuSampler(smi.ask, True)
    sampler.sample()
    sampler.sample()
    assert [words[1].rpartition(",")[2] for words in smi.asked] == [
        "clocks_event_reasons.active",
        "clocks_throttle_reasons.active",
        "clocks_throttle_reasons.active",
    ]
    assert sampler.take()[0]["throttle"] == ["sw_power_cap"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(None, "it is not there", id="no-command"),
        pytest.param((9, "NVIDIA-SMI has failed\nbecause"), "NVIDIA-SMI has failed because", id="no-driver"),
        pytest.param((6, " "), "status 6", id="no-word"),
        pytest.param((9, "x" * 500), "x" * 200, id="many-words"),
    ],
)
def test_where_nothing_answers_it_is_asked_no_more_and_told(answer, said):
    smi = Smi(sample("0, 1, 1, 1, 1, 0x0"), answer, answer, (0, ""))
    sampler = GpuSampler(smi.ask, True)
    sampler.sample()
    assert (len(sampler.take()), sampler.trouble) == (1, "")
    for _time in range(3):
        sampler.sample()
    assert len(smi.asked) == 3 and sampler.take() is None, "unknown, not 0"
    told = "clocks, power, temperature and throttling of the GPUs are not known from some moment on: nvidia-smi gave no answer"
    assert sampler.trouble == f"{told} ({said})"


def test_without_gpus_nobody_is_asked():
    sampler = GpuSampler(None, False)
    sampler.sample()
    assert (sampler.take(), sampler.trouble) == ([], "")
