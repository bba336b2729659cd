# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module with real processes for ranks: a script in the place of an engine's interpreter, which needs neither torch nor a GPU."""

from __future__ import annotations

import functools
import json
import sys
import time

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.module_utils._allreduce import AllreduceError
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import GpuHost
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.modules import nccl_benchmark
from ansible_collections.llmops.inference.tests.unit.gpu import A6000, REPORT, SECOND, Host, process, report, two_a6000

SECRET = "s3cret-of-the-hub"
# Called as an interpreter is: -s WORKER ORDER.
PYTHON = f"""\
#!{sys.executable}
import json, os, sys, time
flag, worker, order = sys.argv[1:]
order, rank = json.loads(order), int(os.environ["RANK"])
assert flag == "-s" and "init_process_group" in open(worker).read()
open(os.path.join(os.environ["HOME"], f"environment.{{os.environ['LOCAL_RANK']}}"), "w").write(json.dumps(dict(os.environ)))
with open(os.environ["NCCL_DEBUG_FILE"].replace("%p", str(rank)), "w") as log:
    log.write("h:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\\n")
answer = {{"torch": "2.9.0+cu130", "cuda": "13.0", "nccl": "2.28.9"}}
answer.update(samples={{size: [20.0, 10.0, 30.0] for size in map(str, order["sizes"])}}, wrong={{size: 0 for size in map(str, order["sizes"])}})
"""
ANSWER = "if rank == 0:\n    print(json.dumps(answer))\n"
NO_ENGINE = (
    "if order['mode'] == 'engine':\n    answer = {'torch': answer['torch'], 'cuda': '13.0', 'nccl': '', 'unavailable': 'rank 0: its kernels are not there'}\n"
)
TABLE = """\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
     {size}        262144  bfloat16     sum      -1   348.03    3.01    5.27       {wrong}   182.49    5.75   10.06       0
# Out of bounds values : {verdict}
# Avg bus bandwidth    : 59.3638
"""
OLD_TABLE = """\
#       size         count      type   redop     time   algbw   busbw   error     time   algbw   busbw   error
     {size}        262144     float     sum   348.03    3.01    5.27   4e-07   182.49    5.75   10.06   4e-07
# Out of bounds values : 0 OK
"""


class Bench:
    """The module on a host with two GPUs, or on another one."""

    def __init__(self, path, run_module, monkeypatch):
        self.path = path
        self.host = two_a6000(path / "root")
        self.run_module = run_module
        self.commands = []
        self.tests = lambda size: (0, TABLE.format(size=size, wrong=0, verdict="0 OK"), "")
        self.servers = []
        self.rank(NO_ENGINE + ANSWER)
        monkeypatch.setattr(nccl_benchmark, "Progress", functools.partial(Progress, folder=path / "progress"))
        monkeypatch.setattr(nccl_benchmark, "GpuHost", lambda ask, files: GpuHost(self.host.ask, self.host.files()))
        monkeypatch.setattr(nccl_benchmark, "running_servers", lambda ask: self.servers)

    def rank(self, script):
        """Lets ranks do what a script says."""
        python = self.path / "python"
        python.write_text(PYTHON + script)
        python.chmod(0o755)

    def run(self, check_mode=False, **args):
        options = {"python": str(self.path / "python"), "hidden_size": 1024, "decode_batches": [1], "prefill_tokens": [64], "timeout": 20}
        return self.run_module(nccl_benchmark, {**options, **args}, command=self.command, check_mode=check_mode)

    def fails(self, **args):
        ran = self.run(**args)
        assert (ran.status, ran.failed, ran.result["allreduce"]) == (1, True, {}) and ran.keys == {"allreduce"}
        return ran.result["msg"]

    def command(self, words, **options):
        self.commands.append((words, options.get("environ_update", {})))
        return self.tests(words[words.index("-b") + 1])

    def environment(self, rank, mode="eager"):
        return json.loads((self.path / mode / f"environment.{rank}").read_text())

    @property
    def ranks_ran(self):
        return (self.path / "eager").exists()


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, run_module, monkeypatch):
    monkeypatch.setattr(Host, "files", lambda self: nccl_benchmark.Files(str(self.root)), raising=False)
    return Bench(tmp_path, run_module, monkeypatch)


@pytest.fixture(name="without")
def fixture_without(bench):
    """The module on a host without GPUs."""
    bench.host = Host(bench.path / "nothing")
    return bench


def test_a_measurement(bench, documented):
    ran = bench.run()
    assert (ran.status, ran.result["changed"], ran.keys) == (0, False, documented(nccl_benchmark))
    record = ran.result["allreduce"]
    row = {"median_us": 20.0, "p10_us": 10.0, "p90_us": 30.0, "samples": 3}
    assert record["messages"] == [
        {"bytes": 2048, "phase": "decode", "tokens": 1, **{mode: {**row, "bus_gb_per_s": 0.1} for mode in ("eager", "graph")}},
        {"bytes": 131072, "phase": "prefill", "tokens": 64, **{mode: {**row, "bus_gb_per_s": 6.55} for mode in ("eager", "graph")}},
    ]
    assert (record["backend"], record["ranks"], record["transports"], record["nccl_tests"]) == ("nccl", 2, ["P2P/CUMEM"], [])
    assert record["unavailable"] == {"engine": "rank 0: its kernels are not there"}
    conditions = {"dtype": "bfloat16", "hidden_size": 1024, "samples": 21, "repeats": 50, "nodes": 1, "environment": {}}
    conditions.update(driver="550.163.01", torch="2.9.0+cu130", cuda="13.0", nccl="2.28.9", gpus=bench.host.facts()["summary"])
    assert record["conditions"] == conditions
    assert time.strptime(record["measured_at"], "%Y-%m-%dT%H:%M:%SZ")
    assert not bench.commands and list((bench.path / "progress").iterdir()) == []


def test_the_record_is_as_documented(bench):
    assert set(bench.run().result["allreduce"]) == set(yaml.safe_load(nccl_benchmark.RETURN)["allreduce"]["contains"])


@pytest.mark.parametrize(
    "args, lengths",
    [
        pytest.param({}, [2048, 131072], id="decode-and-prefill"),
        pytest.param({"dtype": "float32"}, [4096, 262144], id="float32"),
        pytest.param({"decode_batches": [8, 1], "prefill_tokens": []}, [2048, 16384], id="sorted"),
        pytest.param({"decode_batches": [], "prefill_tokens": [], "message_bytes": [1048576, 64]}, [64, 1048576], id="given"),
        pytest.param({"message_bytes": [2048]}, [2048, 2048, 131072], id="given-and-decode"),
    ],
)
def test_sizes(bench, args, lengths):
    bench.rank("open(os.environ['HOME'] + '/order', 'w').write(json.dumps(order))\n" + ANSWER)
    record = bench.run(samples=3, repeats=5, warmup=0, **args).result["allreduce"]
    assert [row["bytes"] for row in record["messages"]] == lengths
    order = json.loads((bench.path / "graph" / "order").read_text())
    assert order["sizes"] == sorted(set(lengths)), "each is measured once"
    assert {name: order[name] for name in ("samples", "repeats", "warmup", "mode", "backend", "world")} == {
        "samples": 3,
        "repeats": 5,
        "warmup": 0,
        "mode": "graph",
        "backend": "nccl",
        "world": 2,
    }


REFUSED = [
    pytest.param({"gpus": ["0", "7"]}, "gpus: 7: this host has 0, 1, GPU-", id="unknown-gpu"),
    pytest.param({"gpus": ["GPU-x"]}, "gpus: GPU-x: this host has 0, 1, GPU-", id="unknown-uuid"),
    pytest.param({"gpus": ["0", "0"]}, "gpus: one GPU is named twice", id="twice"),
    pytest.param({"gpus": ["0", A6000["uuid"]]}, "gpus: one GPU is named twice", id="twice-in-two-ways"),
    pytest.param({"gpus": ["1"]}, "an all-reduce needs two ranks, there is 1 on 1 host(s)", id="one-rank"),
    pytest.param({"backend": "gloo", "ranks": 1}, "an all-reduce needs two ranks, there is 1 on 1 host(s)", id="one-process"),
    pytest.param({"backend": "gloo", "ranks": 0}, "an all-reduce needs two ranks, there is 0 on 1 host(s)", id="no-process"),
    pytest.param({"nodes": 2, "master_address": "192.0.2.1"}, "master_port: several hosts need one port that all of them know", id="no-port"),
    pytest.param({"nodes": 2, "node_rank": 2, "master_port": 29400}, "node_rank 2: 2 hosts are numbered from 0", id="node-rank"),
    pytest.param({"node_rank": -1}, "node_rank -1: 1 hosts are numbered from 0", id="negative-node-rank"),
    pytest.param({"nodes": 0}, "nodes must be 1 or more", id="no-host"),
    pytest.param({"samples": 0}, "samples must be 1 or more", id="no-sample"),
    pytest.param({"repeats": 0, "samples": -1}, "samples, repeats must be 1 or more", id="no-repeat"),
    pytest.param({"timeout": 0}, "timeout must be more than 0", id="no-time"),
    pytest.param({"hidden_size": 0}, "a message of 0 bytes is no positive multiple of 2 bytes (bfloat16)", id="no-hidden-size"),
    pytest.param({"message_bytes": [7]}, "a message of 7 bytes is no positive multiple of 2 bytes (bfloat16)", id="half-an-element"),
    pytest.param({"decode_batches": [], "prefill_tokens": []}, "no message size: give decode_batches, prefill_tokens or message_bytes", id="no-message"),
    pytest.param({"environment": {"NCCL_P2P_DISABLE": True}}, "environment.NCCL_P2P_DISABLE: True is a boolean; an environment variable is text", id="boolean"),
    pytest.param({"python": "/nonexistent/python"}, "[Errno 2] No such file or directory: '/nonexistent/python'", id="no-python"),
]


@pytest.mark.parametrize("args, message", REFUSED)
def test_refusals(bench, args, message):
    assert bench.fails(**args).startswith(message)
    assert not (bench.path / "eager" / "environment.0").exists() and list((bench.path / "progress").iterdir()) == []


@pytest.mark.parametrize("gpus, visible", [([], [0, 1]), (["1", "0"], [1, 0]), ([SECOND["uuid"], "0"], [1, 0])], ids=["all", "order", "by-uuid"])
def test_gpus_are_named_by_number(bench, gpus, visible):
    """CUDA numbers GPUs by speed, nvidia-smi by slot: on a host of several models an index would be another GPU."""
    assert bench.run(gpus=gpus).result["allreduce"]["ranks"] == 2
    for rank in (0, 1):
        assert bench.environment(rank)["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, visible))


def test_without_gpus_it_is_gloo(without):
    record = without.run(ranks=3).result["allreduce"]
    assert (record["backend"], record["ranks"], record["unavailable"]) == ("gloo", 3, {})
    assert [set(row) - {"bytes", "phase", "tokens"} for row in record["messages"]] == [{"eager"}] * 2
    assert without.environment(2)["CUDA_VISIBLE_DEVICES"] == ""


def test_nccl_needs_gpus(without):
    assert without.fails(backend="nccl").startswith("nccl needs GPUs: ")
    assert not without.ranks_ran


@pytest.mark.parametrize("backend", ["auto", "nccl"])
def test_broken_gpus_are_no_reason_for_gloo(without, backend):
    """L12: a driver that fails is not the absence of GPUs."""
    output = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178\n"
    without.host.says(REPORT, output, 18).has_driver("580.173.02", 0).has_device("0000:01:00.0")
    message = without.fails(backend=backend)
    assert message.startswith("nccl needs GPUs: ") and "580.173.02" in message
    assert not without.ranks_ran
    assert without.run(backend="gloo").result["allreduce"]["backend"] == "gloo", "who asks for it gets it"


BUSY = {"processes": process(4242, "sglang::scheduler"), "used": "40000 MiB"}


def test_gpus_of_a_server_are_left_alone(bench):
    bench.host = two_a6000(bench.path / "busy", second=BUSY).has("/proc/4242/cgroup", "0::/system.slice/sglang-main.service\n")
    message = bench.fails()
    assert message.startswith("GPU 1 is used by sglang-main.service (pid 4242): stop it first, or say allow_busy ") and message.endswith("Nothing was run.")
    assert not bench.ranks_ran
    assert bench.run(allow_busy=True).result["allreduce"]["ranks"] == 2


def test_gpus_that_somebody_uses_unseen(bench):
    bench.host = two_a6000(bench.path / "busy", second={"used": "40000 MiB"})
    bench.servers = ["sglang-main.service"]
    assert bench.fails().startswith("GPU 1 has 40000 MiB in use by processes that cannot be seen from here, and sglang-main.service runs: stop it first")


@pytest.mark.parametrize("args", [{"backend": "gloo"}, {"gpus": ["0", "1"]}], ids=["gloo", "others"])
def test_gpus_that_are_not_asked_for_may_be_busy(bench, args):
    third = {**SECOND, "id": "00000000:81:00.0", "uuid": "GPU-third", "minor": "2", **BUSY}
    bench.host = two_a6000(bench.path / "busy").says(REPORT, report({}, SECOND, third)).has("/dev/nvidia2")
    assert not bench.run(**args).failed


def test_the_environment_of_the_ranks(bench, monkeypatch):
    """N03: no proxy; what the operator measures with comes last."""
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy", "no_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.10:3128")
    given = {"NCCL_P2P_DISABLE": 1, "NCCL_DEBUG": "WARN", "GONE": None, "HF_TOKEN": SECRET}
    ran = bench.run(environment=given)
    for rank in (0, 1):
        found = bench.environment(rank)
        assert not [name for name in found if name.lower().endswith("_proxy")]
        assert (found["NCCL_P2P_DISABLE"], found["NCCL_DEBUG"], found["HF_TOKEN"], found["LOCAL_RANK"]) == ("1", "INFO", SECRET, str(rank))
        assert found["MASTER_ADDR"] == "127.0.0.1" and int(found["MASTER_PORT"]) > 1023 and "GONE" not in found
    assert ran.result["allreduce"]["conditions"]["environment"] == {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "WARN", "HF_TOKEN": "********"}
    assert SECRET not in ran.output, "U09"


def test_secrets_of_the_environment_stay_out_of_failures(bench):
    """U09"""
    bench.rank("sys.exit(os.environ['HF_TOKEN'])")
    ran = bench.run(environment={"HF_TOKEN": SECRET})
    assert ran.failed and ran.result["msg"].startswith("a rank failed: ") and SECRET not in ran.output


def test_a_given_port(bench):
    bench.run(master_port=29411)
    assert bench.environment(1)["MASTER_PORT"] == "29411"


@pytest.mark.parametrize("node, measured", [(0, True), (1, False)])
def test_several_hosts(bench, node, measured, documented):
    ran = bench.run(nodes=2, node_rank=node, master_address="192.0.2.1", master_port=29400)
    assert (ran.status, ran.keys, bool(ran.result["allreduce"])) == (0, documented(nccl_benchmark), measured)
    found = bench.environment(1)
    assert {name: found[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")} == {
        "RANK": str(2 * node + 1),
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "MASTER_ADDR": "192.0.2.1",
        "MASTER_PORT": "29400",
    }


@pytest.mark.parametrize(
    "script, message",
    [
        pytest.param(
            "answer['wrong']['2048'] = 3\n" + ANSWER,
            "the all-reduce gave wrong values: 3 elements of 2048 bytes (eager), 3 elements of 2048 bytes (graph), ",
            id="wrong-values",
        ),
        pytest.param("import no_torch", "the interpreter has no no_torch: give the python of an engine's virtual environment", id="no-torch"),
        pytest.param("sys.exit('RuntimeError: CUDA error: out of memory')", "GPU memory ran out: ", id="memory"),
        pytest.param("if rank == 0:\n    print('{\"torch\": ')", 'rank 0 ended with a result that is none: {"torch": ', id="half-an-answer"),
        pytest.param("pass", "rank 0 ended without a result", id="no-answer"),
    ],
)
def test_failures(bench, script, message):
    bench.rank(script)
    assert bench.fails().startswith(message)
    assert list((bench.path / "progress").iterdir()) == []


def test_a_hang(bench):
    """L19: after Init COMPLETE nothing more comes."""
    log = "h:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\\nh:1:1 [0] NCCL INFO ncclCommInitRank Init COMPLETE\\n"
    bench.rank(f"open(os.environ['NCCL_DEBUG_FILE'].replace('%p', str(rank)), 'w').write('{log}')\ntime.sleep(60)\n")
    assert bench.fails(timeout=1).startswith("no answer within 1 s although NCCL was initialised (P2P/CUMEM): peer-to-peer is suspected; try environment")


def test_check_mode_measures_nothing(bench, documented):
    bench.host.ask = None
    ran = bench.run(check_mode=True, samples=0)
    assert (ran.status, ran.result["changed"], ran.result["allreduce"], ran.keys) == (0, False, {}, documented(nccl_benchmark))
    assert not bench.ranks_ran and not bench.commands


@pytest.mark.parametrize(
    "table, dtype, kind", [(TABLE, "bfloat16", "bfloat16"), (TABLE, "float16", "half"), (OLD_TABLE, "float32", "float")], ids=["bf16", "half", "old"]
)
def test_nccl_tests(bench, table, dtype, kind):
    bench.tests = lambda size: (0, table.format(size=size, wrong=0, verdict="0 OK"), "")
    rows = bench.run(nccl_tests="/opt/all_reduce_perf", dtype=dtype, repeats=7, environment={"NCCL_P2P_DISABLE": 1}).result["allreduce"]["nccl_tests"]
    half = {"time_us": 348.03, "algorithm_gb_per_s": 3.01, "bus_gb_per_s": 5.27, "wrong": 0}
    assert [row["bytes"] for row in rows] == ([4096, 262144] if kind == "float" else [2048, 131072])
    assert rows[0]["out_of_place"] == half and rows[0]["in_place"]["bus_gb_per_s"] == 10.06
    words, environment = bench.commands[0]
    size = str(rows[0]["bytes"])
    assert words == ["timeout", "20.0", "/opt/all_reduce_perf", "-b", size, "-e", size, "-g", "2", "-d", kind, "-n", "7"]
    assert environment == {"NCCL_P2P_DISABLE": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.mark.parametrize(
    "answer, message",
    [
        pytest.param(lambda size: (1, TABLE.format(size=size, wrong=5, verdict="5 FAILED"), ""), "nccl-tests found wrong values at 2048 bytes", id="wrong"),
        pytest.param(
            lambda size: (127, "", "timeout: failed to run command '/opt/all_reduce_perf': No such file or directory\n"),
            "nccl-tests printed no table: timeout: failed to run command '/opt/all_reduce_perf': No such file",
            id="missing",
        ),
        pytest.param(lambda size: (124, TABLE.splitlines()[1] + "\n", ""), "nccl-tests ended with status 124: #       size", id="no-row-within-the-time"),
        pytest.param(
            lambda size: (3, TABLE.format(size=size, wrong=0, verdict="0 OK"), "Test NCCL failure common.cu:958 'unhandled system error'\n"),
            "nccl-tests ended with status 3",
            id="fails-after-its-table",
        ),
    ],
)
def test_nccl_tests_that_fail(bench, answer, message):
    bench.tests = answer
    assert bench.fails(nccl_tests="/opt/all_reduce_perf").startswith(message)


@pytest.mark.parametrize("args", [{"backend": "gloo"}, {"nodes": 2, "master_port": 29400}], ids=["gloo", "several-hosts"])
def test_nccl_tests_are_for_the_gpus_of_one_host(bench, args):
    assert bench.run(nccl_tests="/opt/all_reduce_perf", **args).result["allreduce"]["nccl_tests"] == [] and not bench.commands


def test_a_port_is_free():
    assert 1023 < nccl_benchmark.free_port() < 65536


def test_ranks_of_a_slice():
    """T05: a slice of a GPU is named by its own UUID."""
    gpus = [{"index": 0, "uuid": "GPU-a", "mig_devices": [{"uuid": "MIG-a"}, {"uuid": "MIG-b"}]}]
    params = {"backend": "auto", "gpus": ["MIG-a", "MIG-b"], "ranks": 2, "nodes": 1, "node_rank": 0, "master_address": "127.0.0.1", "master_port": 1}
    facts = {"gpus": gpus, "state": "ok", "verdict": []}
    assert nccl_benchmark.choose_ranks(params, facts).gpus == ["MIG-a", "MIG-b"]
    with pytest.raises(AllreduceError, match="gpus: MIG-c: this host has 0, GPU-a, MIG-a, MIG-b"):
        nccl_benchmark.choose_ranks({**params, "gpus": ["MIG-c", "0"]}, facts)
