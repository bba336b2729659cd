# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._allreduce import (
    AllreduceError,
    Ranks,
    Size,
    bus_bandwidth,
    busy_gpus,
    describe,
    explain_failure,
    message_sizes,
    parse_debug,
    parse_nccl_tests,
    percentile,
    summarise,
)
from ansible_collections.llmops.inference.tests.unit.gpu import case

HANG = case("l19_nccl_hang_after_init.log")
# nccl-tests: the columns before 2.13, since then, and with -I 1, -C 1 and -S 1.
OLD = """\
#                                                       out-of-place                       in-place
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        8192          2048     float     sum    11.33    0.72    0.72  4e-07    11.02    0.74    0.74  4e-07
    33554432       8388608     float     sum    221.8  151.28  151.28    N/A    220.1  152.45  152.45    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 76.2975
"""
NEW = """\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1234 on     gpu-01 device  0 [0000:00:06] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    17.20    0.00    0.00       0    17.01    0.00    0.00       0
     1048576        262144     float     sum      -1   348.03    3.01    5.27       0   182.49    5.75   10.06       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 3.8325
#
# Collective test concluded: all_reduce_perf
"""
MORE = """\
#       size         count      type   redop    root     time   algbw   busbw  #wrong   i_min   i_max   i_p99   i_cv%     time   algbw   busbw  #wrong   i_min
     1048576        262144     float     sum      -1   348.03    3.01    5.27       0   340.1   360.7   359.9    1.20   182.49    5.75   10.06       0   180.0
"""
STAMPED = """\
#       size         count      type   redop    root  cputime   algbw   busbw  #wrong  cputime   algbw   busbw  #wrong  timestamp
     1048576        262144     float     sum      -1   348.03    3.01    5.27     N/A   182.49    5.75   10.06     N/A  2026-02-03 10:00:00
"""
NOT_CHECKED = NEW.replace("       0    17", "     N/A    17").replace("  -1   348.03    3.01    5.27       0", "  -1   348.03    3.01    5.27     N/A")


@pytest.mark.parametrize(
    "hidden, batches, prefill, dtype, given, found",
    [
        (4096, [1, 8], [], "bfloat16", [], [Size(8192, "decode", 1), Size(65536, "decode", 8)]),
        (4096, [1], [2048], "float32", [], [Size(16384, "decode", 1), Size(33554432, "prefill", 2048)]),
        (5120, [2], [2], "float16", [1024], [Size(1024), Size(20480, "decode", 2), Size(20480, "prefill", 2)]),
        (4096, [8, 1, 8], [], "bfloat16", [], [Size(8192, "decode", 1), Size(65536, "decode", 8)]),
        (0, [], [], "float32", [8, 4, 8], [Size(4), Size(8)]),
    ],
)
def test_message_sizes(hidden, batches, prefill, dtype, given, found):
    assert message_sizes(hidden, batches, prefill, dtype, given) == found


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((4096, [1], [], "int8"), "dtype int8 is none of bfloat16, float16, float32"),
        ((4096, [0], [], "bfloat16"), "a message of 0 bytes is no positive multiple of 2 bytes (bfloat16)"),
        ((4096, [], [-1], "bfloat16"), "a message of -8192 bytes"),
        ((0, [1], [], "bfloat16"), "a message of 0 bytes"),
        ((4096, [], [], "float32", [6]), "a message of 6 bytes is no positive multiple of 4 bytes (float32)"),
        ((4096, [], [], "bfloat16"), "no message size"),
    ],
)
def test_messages_that_cannot_be(arguments, message):
    with pytest.raises(AllreduceError) as refused:
        message_sizes(*arguments)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "ranks, local, found",
    [
        (
            Ranks("nccl", 2, gpus=("0", "GPU-1")),
            1,
            {
                "RANK": "1",
                "LOCAL_RANK": "1",
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29400",
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                "CUDA_VISIBLE_DEVICES": "0,GPU-1",
            },
        ),
        (
            Ranks("gloo", 4, nodes=2, node=1, address="10.0.0.1", port=5),
            3,
            {
                "RANK": "7",
                "LOCAL_RANK": "3",
                "WORLD_SIZE": "8",
                "MASTER_ADDR": "10.0.0.1",
                "MASTER_PORT": "5",
                "CUDA_VISIBLE_DEVICES": "",
                "OMP_NUM_THREADS": "1",
            },
        ),
    ],
)
def test_the_environment_of_a_rank(ranks, local, found):
    assert ranks.environment(local) == found
    assert found["WORLD_SIZE"] == str(ranks.world)


@pytest.mark.parametrize(
    "size, microseconds, ranks, found",
    [(268435456, 926.89, 2, 289.61), (1048576, 182.49, 8, 10.06), (1000, 1.0, 1, 0.0), (4096, 58.38, 2, 0.07)],
)
def test_bus_bandwidth(size, microseconds, ranks, found):
    assert bus_bandwidth(size, microseconds, ranks) == pytest.approx(found, abs=0.01)


@pytest.mark.parametrize(
    "samples, share, found",
    [([5.0], 0.9, 5.0), ([3, 1, 2], 0.5, 2), ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 0.1, 2), ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 0.9, 10), ([2, 1], 1.0, 2)],
)
def test_percentile(samples, share, found):
    assert percentile(samples, share) == found


def test_summarise():
    sizes = [Size(8192, "decode", 1), Size(1 << 20)]
    modes = {
        "eager": {"samples": {"8192": [41.0, 43.0, 42.0], "1048576": [43.07]}, "wrong": {"8192": 0, "1048576": 0}},
        "graph": {"samples": {"8192": [12.061, 12.059, 12.06]}, "wrong": {}},
    }
    assert summarise(sizes, modes, 2) == [
        {
            "bytes": 8192,
            "phase": "decode",
            "tokens": 1,
            "eager": {"median_us": 42.0, "p10_us": 41.0, "p90_us": 43.0, "samples": 3, "bus_gb_per_s": 0.2},
            "graph": {"median_us": 12.06, "p10_us": 12.06, "p90_us": 12.06, "samples": 3, "bus_gb_per_s": 0.68},
        },
        {
            "bytes": 1048576,
            "phase": "given",
            "tokens": 0,
            "eager": {"median_us": 43.07, "p10_us": 43.07, "p90_us": 43.07, "samples": 1, "bus_gb_per_s": 24.35},
        },
    ]


def test_wrong_sums_give_no_number():
    """Case L19: links that lose data, rather than hang."""
    modes = {"eager": {"samples": {"8": [1.0]}, "wrong": {"8": 0, "16": 3}}, "graph": {"samples": {}, "wrong": {"16": 1}}}
    with pytest.raises(AllreduceError, match=r"wrong values: 3 elements of 16 bytes \(eager\), 1 elements of 16 bytes \(graph\); the links cannot be trusted"):
        summarise([Size(8), Size(16)], modes, 2)


@pytest.mark.parametrize(
    "text, version, transports, initialised",
    [
        pytest.param(HANG, "", ["P2P/CUMEM"], True, id="L19"),
        ("NCCL version 2.28.9+cuda13.0\n", "2.28.9", [], False),
        (
            "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\nh:1:2 Channel 01/24 : 0[6] -> 1[7] via SHM/direct/direct\r\n",
            "",
            ["NET/Socket/0", "SHM/direct/direct"],
            False,
        ),
        ("", "", [], False),
    ],
)
def test_parse_debug(text, version, transports, initialised):
    assert parse_debug(text) == {"version": version, "transports": transports, "initialised": initialised}


@pytest.mark.parametrize(
    "output, debug, timed_out, words",
    [
        pytest.param("", HANG, 60.0, "no answer within 60 s although NCCL was initialised (P2P/CUMEM): peer-to-peer is suspected", id="L19"),
        pytest.param("", HANG, 60.0, "NCCL_P2P_DISABLE: '1', and look at ACS and the IOMMU", id="L19-remedy"),
        ("", "Init COMPLETE", 60.0, "although NCCL was initialised: peer-to-peer"),
        ("", "", 60.0, "no answer within 60 s: NCCL was not initialised"),
        pytest.param("OSError: [Errno 28] No space left on device", "", 0, "shared memory is too small", id="L05"),
        ("ncclSystemError: System call (e.g. socket, malloc) or external library call failed", "", 0, "NCCL met an error of the system"),
        ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 6000", "", 0, "two ranks were given one GPU"),
        pytest.param("The NVIDIA driver on your system is too old (found version 12020)", "", 0, "the driver is older", id="L11-driver"),
        pytest.param("Error 802: system not yet initialized", "", 0, "start the fabric manager", id="L11-802"),
        ("CUDA error: no kernel image is available for execution on the device", "", 0, "no kernel for this GPU"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "", 0, "GPU memory ran out"),
        ("[Errno 98] Address already in use", "", 0, "give another master_port"),
        ("ModuleNotFoundError: No module named 'torch'", "", 0, "the interpreter has no torch: give the python"),
        (
            "DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (h, 1).",
            HANG,
            60.0,
            "do not reach each other",
        ),
        ("DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", "", 600.0, "check master_address"),
        ("DistNetworkError: The client socket has failed to connect to any network address of (h, 1).", "", 0, "check master_address"),
        ("Connection refused", "", 0, "check master_address"),
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE) ran for 60000 ms on rank 0",
            HANG,
            60.0,
            "peer-to-peer is suspected",
        ),
        ("a\n\n b {x} \nc\nd\n", "", 0, "a rank failed: b {x} / c / d"),
        ("", "", 0, "a rank failed: it printed nothing"),
    ],
)
def test_explain_failure(output, debug, timed_out, words):
    assert words in explain_failure(output, parse_debug(debug), timed_out)


def row(size, *halves):
    names = ("time_us", "algorithm_gb_per_s", "bus_gb_per_s", "wrong")
    return {"bytes": size, **{name: dict(zip(names, half)) for name, half in zip(("out_of_place", "in_place"), halves)}}


@pytest.mark.parametrize(
    "text, found",
    [
        pytest.param(
            OLD,
            [row(8192, (11.33, 0.72, 0.72, 0), (11.02, 0.74, 0.74, 0)), row(33554432, (221.8, 151.28, 151.28, None), (220.1, 152.45, 152.45, None))],
            id="old",
        ),
        pytest.param(NEW, [row(8, (17.2, 0.0, 0.0, 0), (17.01, 0.0, 0.0, 0)), row(1048576, (348.03, 3.01, 5.27, 0), (182.49, 5.75, 10.06, 0))], id="new"),
        pytest.param(
            NEW.replace("\n", "\r\n"), [row(8, (17.2, 0, 0, 0), (17.01, 0, 0, 0)), row(1048576, (348.03, 3.01, 5.27, 0), (182.49, 5.75, 10.06, 0))], id="crlf"
        ),
        pytest.param(MORE, [row(1048576, (348.03, 3.01, 5.27, 0), (182.49, 5.75, 10.06, 0))], id="more-columns"),
        pytest.param(STAMPED, [row(1048576, (348.03, 3.01, 5.27, None), (182.49, 5.75, 10.06, None))], id="cputime-and-timestamp"),
        pytest.param(
            NOT_CHECKED, [row(8, (17.2, 0, 0, None), (17.01, 0, 0, 0)), row(1048576, (348.03, 3.01, 5.27, None), (182.49, 5.75, 10.06, 0))], id="not-checked"
        ),
        pytest.param(
            NEW.replace(" 182.49    5.75   10.06       0", ""),
            [row(8, (17.2, 0, 0, 0), (17.01, 0, 0, 0)), row(1048576, (348.03, 3.01, 5.27, 0))],
            id="one-half",
        ),
        pytest.param(NEW.partition("           8 ")[0], [], id="ended-early"),
    ],
)
def test_parse_nccl_tests(text, found):
    assert parse_nccl_tests(text) == found


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "nccl-tests printed no table"),
        ("a\nb\ngpu-01: Test NCCL failure common.cu:1279 'unhandled system error'\n", "printed no table: a / b / gpu-01: Test NCCL failure"),
        ("#       size         count      type   redop    root\n", "nccl-tests printed no table"),
        (NEW.replace("5.27       0", "5.27      12"), "wrong values at 1048576 bytes"),
        (
            NEW.replace("10.06       0", "10.06       1").replace("17.01    0.00    0.00       0", "17.01    0.00    0.00       1"),
            "wrong values at 8, 1048576 bytes",
        ),
        (OLD.replace("0.74  4e-07", "0.74  3e-01"), "wrong values at 8192 bytes"),
        pytest.param(OLD.replace("0.74  4e-07", "0.74    nan"), "wrong values at 8192 bytes", id="not-a-number-is-wrong"),
        (NEW.replace(": 0 OK", ": 3 FAILED"), "wrong values"),
    ],
)
def test_nccl_tests_without_numbers(text, message):
    with pytest.raises(AllreduceError) as refused:
        parse_nccl_tests(text)
    assert message in str(refused.value)


SERVER = {"pid": 1720, "name": "sglang::scheduler_TP0", "unit": "sglang-main.service", "memory_mib": 133864}
OTHER = {"pid": 7, "name": "python3", "unit": "", "memory_mib": None}


@pytest.mark.parametrize(
    "gpus, wanted, servers, found",
    [
        ([([], 0), ([], 2)], [], [], []),
        ([([SERVER, OTHER], 133874), ([], 0)], [], [], ["GPU 0 is used by sglang-main.service (pid 1720), python3 (pid 7)"]),
        ([([SERVER], 133874), ([], 0)], ["1"], [], []),
        ([([SERVER], 133874), ([OTHER], 9)], ["GPU-1"], [], ["GPU 1 is used by python3 (pid 7)"]),
        ([([], 2048)], ["0"], [], ["GPU 0 has 2048 MiB in use by processes that cannot be seen from here"]),
        ([([], 2048)], [], ["sglang-main.service"], ["GPU 0 has 2048 MiB in use by processes that cannot be seen from here, and sglang-main.service runs"]),
        ([([], None)], [], [], []),
        ([], ["0"], [], []),
    ],
)
def test_busy_gpus(gpus, wanted, servers, found):
    facts = {"gpus": [{"index": index, "uuid": f"GPU-{index}", "processes": of, "memory_used_mib": used} for index, (of, used) in enumerate(gpus)]}
    assert busy_gpus(facts, wanted, servers) == found


RECORD = {
    "backend": "nccl",
    "ranks": 2,
    "transports": ["P2P/CUMEM"],
    "conditions": {"dtype": "bfloat16", "gpus": "2x H200", "torch": "2.9.1", "nccl": "2.28.9"},
    "messages": [
        {
            "bytes": 8192,
            "phase": "decode",
            "tokens": 1,
            "eager": {"median_us": 42.8, "bus_gb_per_s": 0.19},
            "graph": {"median_us": 12.06, "bus_gb_per_s": 0.68},
        },
        {"bytes": 16777216, "phase": "given", "tokens": 0, "eager": {"median_us": 86.66, "bus_gb_per_s": 193.61}},
        {"bytes": 512, "phase": "given", "tokens": 0, "eager": {"median_us": 41.0, "bus_gb_per_s": 0.0}},
    ],
    "unavailable": {"engine": "rank 0: its kernels are not there"},
}


def test_describe():
    assert describe(RECORD, "gpu-01", [{"name": "NCCL_P2P_LEVEL", "value": "PHB", "reason": "P2P works"}]) == [
        "gpu-01: all-reduce of bfloat16 over 2 ranks (nccl via P2P/CUMEM; 2x H200; torch 2.9.1, NCCL 2.28.9)",
        "      8 KiB  decode of 1 token      one by one 42.8 us (0.2 GB/s), in a CUDA graph 12.1 us (0.7 GB/s)",
        "     16 MiB  given                  one by one 86.7 us (193.6 GB/s)",
        "      512 B  given                  one by one 41.0 us (0.0 GB/s)",
        "  not measured the engine's own, in a graph: rank 0: its kernels are not there",
        "  settings that the links suggest; put what you want into sglang_server_hardware_env and measure again:",
        '    NCCL_P2P_LEVEL: "PHB"  # P2P works',
    ]
    plain = {
        **RECORD,
        "backend": "gloo",
        "transports": [],
        "conditions": {**RECORD["conditions"], "gpus": "no GPU", "nccl": ""},
        "messages": [],
        "unavailable": {},
    }
    assert describe(plain, "h") == ["h: all-reduce of bfloat16 over 2 ranks (gloo; no GPU; torch 2.9.1)"]
    assert describe({}, "h") == ["h: nothing was measured here"]
