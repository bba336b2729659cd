# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The probe as it is started on a host, against tiny engines."""

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils._engine_probe.fake import HARDWARE, TORCH, Engine, assigning, declaring, package

KEYS = {"flags", "errors", "rejection", "changes", "effective", "environment", "unexplained", "touched", "asked", "missing"}


def test_the_document(tmp_path):
    document = assigning(tmp_path).document(["--model-path", "m"], [], ["--tp", "2"])
    assert (document["format"], document["engine"], document["unexplained"]) == (1, "9.9.9", None)
    assert document["import_seconds"] >= 0 and "traceback" not in document
    fine, without_model, wrong = document["candidates"]
    assert set(fine) == KEYS | {"log"} and set(wrong) == KEYS, "what is not even parsed is not resolved"
    assert (fine["rejection"], fine["errors"], fine["effective"]["model_path"]) == (None, [], "m")
    assert (without_model["rejection"]["type"], without_model["effective"]) == ("Refused", {})
    assert without_model["rejection"]["message"] == "the following arguments are required: --model-path/--model"
    assert without_model["rejection"]["function"] == "prepare_server_args"
    assert [error["code"] for error in wrong["errors"]] == ["abbreviation"] and wrong["rejection"] is None and wrong["effective"] == {}


def test_candidates_know_nothing_of_each_other(tmp_path):
    engine = assigning(
        tmp_path,
        """
        os.environ["LEFT"] = os.environ.get("LEFT", "") + "x"
        os.environ["LANG"] = os.environ["LANG"]
        os.environ.pop("GIVEN", None)
        common.LEFT = self.page_size = getattr(common, "LEFT", 0) + 1
        """,
    )
    text = json.dumps({"argvs": [["--model-path", "m"]] * 3, "hardware": HARDWARE})
    answer = json.loads(engine.start(text, {"LANG": "C.UTF-8", "GIVEN": "1"}).stdout)
    assert [row["environment"] for row in answer["candidates"]] == [{"LEFT": "x"}] * 3, "only what the engine set, and each in its own process"
    assert [row["effective"]["page_size"] for row in answer["candidates"]] == [1] * 3


def test_no_candidates(tmp_path):
    assert assigning(tmp_path).document()["candidates"] == []


def test_flags_are_those_of_the_engine(tmp_path):
    candidate = assigning(tmp_path).resolve("--tensor-parallel-size=2", "--old-limit", "--overlap")
    tp_size, old = candidate["flags"][1:3]
    assert (tp_size["canonical"], tp_size["asked"]) == ("--tp-size", {"tp_size": 2})
    assert (old["deprecated"], old["successor"], old["asked"]) == ("deprecated", "--limit=7M", {"limit": 7})
    assert [candidate["effective"][name] for name in ("tp_size", "limit", "overlap")] == [2, 7, True]


def test_every_wrong_word_at_once(tmp_path):
    candidate = assigning(tmp_path, "raise ValueError('nobody asks')").resolve("x", "--tp", "2", "--limit", "7", "--backend=tritn", "--p", "1", "--old")
    assert [(row["code"], row["flag"]) for row in candidate["errors"]] == [
        ("unexpected", "--model-path"),
        ("abbreviation", "--tp"),
        ("invalid", "--limit"),
        ("invalid", "--backend"),
        ("abbreviation", "--p"),
        ("abbreviation", "--old"),
    ]
    assert candidate["rejection"] is None and candidate["unexplained"] is None


def test_a_rejection_is_explained(tmp_path):
    engine = assigning(
        tmp_path,
        "self.page_size = 64\nself._check()",
        """
        def _check(self):
            # Never both.
            if self.tp_size > 1:
                if not self.overlap:
                    raise ValueError(  # <1>
                        "needs --overlap"
                    )
        """,
    )
    candidate = engine.resolve("--tp-size", "2")
    line = int(engine.at("if self.tp_size > 1").split(":")[1])
    assert candidate["rejection"] == {
        "type": "ValueError",
        "message": "needs --overlap",
        "at": engine.at("<1>"),
        "function": "_check",
        "because": [
            {"test": "not self.overlap", "was": True, "line": line + 1, "comment": None},
            {"test": "self.tp_size > 1", "was": True, "line": line, "comment": "Never both."},
        ],
        "comment": None,
        "statement": 'raise ValueError( # <1> "needs --overlap" )',
    }
    assert (candidate["effective"], candidate["unexplained"]) == ({}, None)
    assert [row["field"] for row in candidate["changes"]] == ["page_size"], "what was seen until then"


@pytest.mark.parametrize(
    "body, kind, message, test",
    [
        ("# Why.\nif self.tp_size == 1:\n    assert self.overlap, 'no overlap'", "AssertionError", "no overlap", "self.tp_size == 1"),
        ("if True:\n    sys.exit('bye')", "SystemExit", "bye", "True"),
        ("try:\n    int('x')\nexcept ValueError as error:\n    raise RuntimeError('told') from error", "RuntimeError", "told", "except ValueError"),
        ("if self.tp_size:\n    open('/none/file')", "FileNotFoundError", "[Errno 2] No such file or directory: '/none/file'", "self.tp_size"),
    ],
)
def test_what_else_is_a_rejection(tmp_path, body, kind, message, test):
    rejection = assigning(tmp_path, body).resolve()["rejection"]
    assert (rejection["type"], rejection["message"], rejection["function"]) == (kind, message, "__post_init__")
    assert rejection["because"][0]["test"] == test and rejection["comment"] == ("Why." if kind == "AssertionError" else None)


def test_a_rejection_of_the_last_check(tmp_path):
    rejection = assigning(tmp_path, check="raise ValueError('checked')").resolve()["rejection"]
    assert (rejection["message"], rejection["function"], rejection["because"], rejection["comment"]) == ("checked", "check_server_args", [], None)


def test_a_rejection_whose_source_cannot_be_read(tmp_path):
    methods = 'def _check(self):\n    text = """one\ntwo"""\n    raise ValueError(text)\n'
    rejection = assigning(tmp_path, "self._check()", methods).resolve()["rejection"]
    assert (rejection["message"].split(), rejection["function"]) == (["one", "two"], "_check")


def test_a_rejection_out_of_generated_source(tmp_path):
    engine = assigning(tmp_path, "exec(compile('raise ValueError(5)', '/none/sglang/made.py', 'exec'), {})")
    rejection = engine.resolve()["rejection"]
    assert (rejection["type"], rejection["at"], rejection["function"]) == ("ValueError", "/none/sglang/made.py:1", "<module>")
    assert (rejection["because"], rejection["comment"], "statement" in rejection) == ([], None, False)


@pytest.mark.parametrize(
    "raised, text",
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("from os import no_such_name", None),
        ("raise NotImplementedError('not on cpu')", "NotImplementedError: not on cpu"),
        ("torch.cuda.mem_get_info()", "CannotKnow: the engine asked the GPU itself (torch.cuda.mem_get_info), which recorded facts cannot answer"),
        ("import flashabsent; flashabsent.version()", "CannotKnow: flashabsent.version is not installed with this engine"),
    ],
)
def test_what_cannot_be_followed_is_no_rejection(tmp_path, raised, text):
    candidate = assigning(tmp_path, f"self.page_size = 64\n{raised}").resolve(packages=["flashabsent"])
    assert candidate["rejection"] is None and candidate["effective"] == {}
    assert candidate["unexplained"] == text or (text is None and candidate["unexplained"].startswith("ImportError: "))
    assert [row["field"] for row in candidate["changes"]] == ["page_size"]


@pytest.mark.parametrize(
    "end, status",
    [("os._exit(3)", 3), ("os._exit(0)", 0), ("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os.kill(os.getpid(), signal.SIGTERM)", -15)],
)
def test_an_engine_that_ends_its_process(tmp_path, end, status):
    engine = assigning(tmp_path, f"if self.tp_size == 2:\n    {end}")
    ended, fine = engine.document(["--model-path", "m", "--tp-size", "2"], ["--model-path", "m"])["candidates"]
    assert ended == {"unexplained": f"the engine ended the process that resolved the flags (status {status})"}
    assert fine["unexplained"] is None and fine["effective"]["tp_size"] == 1


@pytest.mark.parametrize("words, text", [(["--limit", "odd"], "RuntimeError: an odd size")])
def test_a_failure_of_the_probe_itself_is_one_candidates(tmp_path, words, text):
    document = assigning(tmp_path).document(["--model-path", "m", *words], ["--model-path", "m"])
    broken, fine = document["candidates"]
    assert (broken, document["unexplained"]) == ({"unexplained": text}, None)
    assert fine["effective"]["model_path"] == "m"


@pytest.mark.parametrize("words", [["--version"], ["--exit", "1"]])
def test_a_parser_that_leaves(tmp_path, words):
    engine = assigning(tmp_path)
    path = engine.site / "sglang/srt/server_args.py"
    more = '        parser.add_argument("--version", action="version", version="9")\n        parser.add_argument("--exit", type=sys.exit)\n'
    path.write_text(path.read_text().replace('        parser.add_argument("--overlap"', f'{more}        parser.add_argument("--overlap"'))
    (candidate,) = engine.document(words)["candidates"]
    assert candidate == {"unexplained": f"SystemExit: {words[1] if words[1:] else 0}"}


def test_no_engine(tmp_path):
    document = Engine(tmp_path, {}).document(["--model-path", "m"])
    assert document["unexplained"] == "ModuleNotFoundError: No module named 'sglang'" and document["candidates"] == []
    assert document["engine"] == "9.9.9" and document["traceback"].startswith("Traceback") and "import_seconds" not in document


def test_not_even_a_package(tmp_path):
    engine = Engine(tmp_path, {})
    (engine.site / "sglang-9.9.9.dist-info" / "METADATA").unlink()
    (engine.site / "sglang-9.9.9.dist-info").rmdir()
    document = engine.document()
    assert document["unexplained"].startswith("PackageNotFoundError: ") and document["engine"] == ""


def test_an_engine_that_cannot_be_imported(tmp_path):
    document = assigning(tmp_path, top=f"raise OSError('no libcuda' + {'x' * 3000!r})").document(["--model-path", "m"])
    assert document["unexplained"].startswith("OSError: no libcuda") and len(document["traceback"]) == 2000
    assert document["candidates"] == []


@pytest.mark.parametrize("text, kind", [("", "JSONDecodeError"), ("{", "JSONDecodeError"), ("{}", "KeyError"), ("[]", "AttributeError")])
def test_a_request_that_is_none(tmp_path, text, kind):
    document = json.loads(assigning(tmp_path).start(text).stdout)
    assert document["unexplained"].startswith(f"{kind}: ")


def test_noise_of_the_engine(tmp_path):
    engine = assigning(
        tmp_path,
        """
        print("noise of print")
        os.write(1, b"noise of write\\n")
        os.system("echo no; echo ise")
        sys.stdout.write("noise without end")
        sys.stdout.flush()
        sys.__stdout__.write("never flushed")
        """,
        top='print("noise of import", flush=True)',
    )
    done = engine.start(json.dumps({"argvs": [["--model-path", "m"]], "hardware": None}))
    assert json.loads(done.stdout)["candidates"][0]["effective"]["model_path"] == "m" and "noise" not in done.stdout
    for noise in ("noise of write", "no\nise", "noise without end", "noise of import"):
        assert noise in done.stderr


def test_a_large_answer(tmp_path):
    candidate = assigning(tmp_path, 'self.backend = "x" * 500000').resolve()
    assert len(candidate["effective"]["backend"]) == 500000, "more than a pipe holds"


SEAMS = """
self.page_size = torch.cuda.device_count()
self.backend = torch.cuda.get_device_name(1) if torch.cuda.is_available() else "none"
self.limit = [torch.version.cuda, torch.cuda.get_device_capability(), common.get_nvgpu_memory_capacity(), common.get_nvidia_driver_version()]
import flashabsent
"""


def test_described_hardware(tmp_path):
    candidate = assigning(tmp_path, SEAMS).resolve(packages=["flashabsent"])
    assert [candidate["effective"][name] for name in ("page_size", "backend", "limit")] == [2, "NVIDIA H200", ["13.0", [9, 0], 143771.0, [580, 95, 5]]]
    assert candidate["asked"] == {
        "device_count": 1,
        "is_available": 1,
        "get_device_name": 1,
        "get_device_capability": 1,
        "get_nvgpu_memory_capacity": 1,
        "get_nvidia_driver_version": 1,
    }
    assert (candidate["missing"], candidate["touched"]) == ([], [])


def test_what_is_asked_during_import_counts_and_is_answered(tmp_path):
    candidate = assigning(tmp_path, "self.overlap = CUDA", top="CUDA = torch.cuda.is_available()").resolve()
    assert (candidate["asked"], candidate["effective"]["overlap"]) == ({"is_available": 1}, True)


def test_names_that_this_engine_does_not_have(tmp_path):
    files = {"torch.py": TORCH.replace("= mem_get_info", "= other"), "sglang/srt/utils/common.py": "def get_nvidia_driver_version(): pass\n"}
    assert assigning(tmp_path, **files).resolve()["missing"] == ["mem_get_info", "get_nvgpu_memory_capacity"]


def test_this_machine_as_it_is(tmp_path):
    body = """
    self.page_size = torch.cuda.device_count()
    self.backend = str(torch.version.cuda)
    try:
        import flashabsent
    except ImportError:
        self.limit = 5
    """
    candidate = assigning(tmp_path, body).resolve(hardware=None, packages=["flashabsent"])
    assert [candidate["effective"][name] for name in ("page_size", "backend", "limit")] == [0, "None", 5], "nothing is pretended"
    assert (candidate["asked"], candidate["missing"]) == ({}, [])


@pytest.mark.parametrize("hardware", [HARDWARE, None])
def test_nothing_is_compiled(tmp_path, hardware):
    engine = assigning(
        tmp_path,
        "self.page_size = one() + two() + torch.compile(one)()",
        top="""
        @torch.compile
        def one():
            return 1


        @torch.compile(dynamic=True)
        def two():
            return 2
        """,
    )
    assert engine.resolve(hardware=hardware)["effective"]["page_size"] == 4


def test_what_is_touched_during_import_and_resolution(tmp_path):
    top = "try:\n    open('/dev/nvidia-none')\nexcept OSError:\n    pass"
    candidate = assigning(tmp_path, "os.system('true')", top=top).resolve()
    assert candidate["touched"] == ["open /dev/nvidia-none", "process b'true'"]


def test_parts_that_not_every_version_has(tmp_path):
    """Without graph records, and with modules that are imported before a candidate is timed."""
    files = {
        "sglang/srt/model_executor/cuda_graph_config.py": "GraphConfig = object\n",
        "sglang/srt/configs/model_config.py": "import torch\ntorch.cuda.is_available()\n",
    }
    candidate = declaring(tmp_path, **files).resolve()
    assert (candidate["unexplained"], candidate["asked"]) == (None, {"is_available": 1})


def test_a_part_that_is_broken_is_not_one_that_is_not_there(tmp_path):
    document = declaring(tmp_path, **{"sglang/srt/configs/model_config.py": "from os import nothing\n"}).document(["--model-path", "m"])
    assert document["unexplained"].startswith("ImportError: cannot import name 'nothing'")


def test_packages():
    assert package("a/b/c.py", "a/d.py") == {"a/__init__.py": "", "a/b/__init__.py": "", "sglang/__init__.py": ""}


def test_an_engine_that_resolves_elsewhere_is_not_fine(tmp_path):
    """The flags would all look honoured: no value differs from what was asked."""
    engine = assigning(tmp_path)
    path = engine.site / "sglang/srt/server_args.py"
    path.write_text(path.read_text().replace("__post_init__", "resolve_somehow"))
    candidate = engine.resolve("--tp-size", "2")
    assert "no value changed while the flags were resolved" in candidate["unexplained"]
    assert (candidate["effective"], candidate["rejection"]) == ({}, None)
    assert [flag["flag"] for flag in candidate["flags"]] == ["--model-path", "--tp-size"], "the words were read"


@pytest.mark.parametrize(
    "old, new, why",
    [
        pytest.param("def prepare_server_args(", "def prepare(", "AttributeError: ", id="another-entry"),
        pytest.param("def check_server_args(self)", "def check(self)", "AttributeError: ", id="another-check"),
        pytest.param("def prepare_server_args(argv)", "def prepare_server_args(argv, more)", "TypeError: ", id="another-signature"),
    ],
)
def test_an_engine_with_another_interface_is_not_refusing(tmp_path, old, new, why):
    engine = assigning(tmp_path)
    path = engine.site / "sglang/srt/server_args.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    candidate = engine.resolve()
    assert candidate["unexplained"].startswith(why)
    assert (candidate["effective"], candidate["rejection"]) == ({}, None)


def test_a_stand_in_for_a_missing_package_is_no_judgement(tmp_path):
    candidate = assigning(tmp_path, "import flashabsent\nself.page_size = 1 + flashabsent.version").resolve(packages=["flashabsent"])
    assert candidate["unexplained"].startswith("TypeError: ")
    assert candidate["rejection"] is None
