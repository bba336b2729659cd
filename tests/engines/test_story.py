# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The story of ct129 on real engines: what each version makes of three flags on two RTX A6000, found by running them."""

from __future__ import annotations

import pytest

from .conftest import MODELS, hardware

OLD = ("0.5.10", "0.5.12")
ALIAS = ("0.5.16", "0.5.17", "0.5.19")
NEW = ("0.5.23",)
ALL = OLD + ALIAS + NEW

BASE = ["--model-path", str(MODELS / "qwen3.6-27b"), "--tp-size", "2", "--mem-fraction-static", "0.88"]
BASE += ["--speculative-algorithm", "NEXTN", "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"]
# Without it the old engines refuse speculation on this model: test_a_refusal_names_what_would_help.
EXTRA_BUFFER = ["--mamba-scheduler-strategy", "extra_buffer"]
VARIANTS = {
    "plain": [],
    "graphs": ["--enforce-piecewise-cuda-graph"],
    "language": ["--language-only"],
    "overlap": ["--enable-single-batch-overlap"],
    "three at once": ["--language-only", "--enforce-piecewise-cuda-graph", "--enable-single-batch-overlap"],
    "removed": ["--enable-piecewise-cuda-graph"],
}


def candidates(version):
    base = BASE + (EXTRA_BUFFER if version in OLD else [])
    rows = {name: base + extra for name, extra in VARIANTS.items()}
    rows["no speculation"] = BASE[:6]
    rows["lone"] = [*BASE[:6], "--speculative-num-steps", "3"]
    rows["no buffer"] = BASE
    rows["short"] = [*base, "--max-running-request", "4"]
    rows["draft tokens"] = [word if word != "4" else "8" for word in base]
    return rows


@pytest.fixture(scope="module")
def story(engines):
    def ask(version, name):
        rows = candidates(version)
        return engines.preflight(version, hardware("a6000-x2"), rows[name], rows.values())

    return ask


def found(result, code):
    return [row for row in result["findings"] if row["code"] == code]


def outcome(result, flag):
    return next(row["outcome"] for row in result["flags"] if row["flag"] == flag)


def prefill_graphs(result):
    config = result["effective"].get("cuda_graph_config")
    return config["prefill"]["backend"] if config else not result["effective"]["disable_piecewise_cuda_graph"]


@pytest.mark.parametrize("version", ALL)
def test_every_engine_is_explained(story, version):
    result = story(version, "plain")
    assert result["explained"]
    assert result["engine"]["version"] == version
    assert len(result["changes"]) > 20
    assert all(change["at"] for change in result["changes"])
    assert outcome(result, "--speculative-algorithm") == "translated"
    assert result["effective"]["speculative_algorithm"] == "EAGLE"


def test_piecewise_graphs_are_silently_off_by_the_multimodal_rule(story):
    result = story("0.5.12", "plain")
    (row,) = found(result, "silently_disabled")
    assert row["severity"] == "warning"
    assert "disable_piecewise_cuda_graph: False becomes True" in row["text"]
    assert "self.get_model_config().is_multimodal" in row["hint"]
    assert "8. Multimodal / VLM models" in row["hint"]
    assert row["source"] == "_handle_piecewise_cuda_graph, sglang/srt/server_args.py:1337"
    assert prefill_graphs(result) is False


def test_an_older_engine_has_two_reasons_and_both_are_told(story):
    """Taking speculation away is not enough on 0.5.10: the rule for multimodal models would do the same."""
    (row,) = [row for row in found(story("0.5.10", "plain"), "silently_disabled") if "piecewise" in row["text"]]
    assert "which follows from --speculative-algorithm" in row["text"]
    assert "# 2. Speculative decoding" in row["hint"]
    assert "set again at server_args.py:" in row["hint"]
    (row,) = [row for row in found(story("0.5.10", "no speculation"), "silently_disabled") if "piecewise" in row["text"]]
    assert "is_multimodal" in row["hint"]


@pytest.mark.parametrize("version", ALIAS + NEW)
def test_newer_engines_keep_prefill_graphs_for_this_model(story, version):
    result = story(version, "plain")
    assert prefill_graphs(result) == "breakable"
    assert found(result, "silently_disabled") == []


@pytest.mark.parametrize("version", OLD)
def test_enforced_graphs_are_honoured_on_old_engines(story, version):
    result = story(version, "graphs")
    assert outcome(result, "--enforce-piecewise-cuda-graph") == "honoured"
    assert prefill_graphs(result) is True
    assert [row for row in found(result, "silently_disabled") if "piecewise" in row["text"]] == []


@pytest.mark.parametrize("version", ALIAS)
def test_enforced_graphs_are_translated_where_they_are_an_alias(story, version):
    result = story(version, "graphs")
    assert outcome(result, "--enforce-piecewise-cuda-graph") == "translated"
    assert prefill_graphs(result) == "tc_piecewise"
    (row,) = [row for row in found(result, "translated") if "--enforce-piecewise-cuda-graph" in row["text"]]
    assert row["hint"] == "write --cuda-graph-backend-prefill=tc_piecewise"


@pytest.mark.parametrize("version", NEW)
def test_enforced_graphs_are_removed_and_the_successor_is_named(story, version):
    """The successor comes from the parser table of another engine that is installed beside it."""
    result = story(version, "graphs")
    (row,) = found(result, "flag_unknown")
    assert result["verdict"] == "rejected"
    assert row["text"] == "--enforce-piecewise-cuda-graph is not a flag of this engine"
    assert row["hint"] == "SGLang 0.5.19 has it as an old spelling of --cuda-graph-backend-prefill=tc_piecewise"


@pytest.mark.parametrize("version", OLD)
def test_language_only_is_refused_in_the_engines_own_words(story, version):
    result = story(version, "language")
    (row,) = found(result, "engine_rejects")
    assert row["text"] == 'the engine refuses: "requires at least one encoder urls to be set via --encoder-urls"'
    assert row["hint"] == "because `self.language_only and len(self.encoder_urls) == 0`"
    assert "language_only" in row["fields"]
    assert row["source"].startswith("_handle_encoder_disaggregation, sglang/srt/server_args.py:")
    assert {row["outcome"] for row in result["flags"]} == {"unknown"}


@pytest.mark.parametrize("version", ALIAS + NEW)
def test_newer_engines_take_language_only_without_urls(story, version):
    """They start and wait for encoders to register; the role of the server changes, the flag is honoured."""
    result = story(version, "language")
    assert found(result, "engine_rejects") == []
    assert outcome(result, "--language-only") == "honoured"


def test_of_three_flags_at_once_the_guilty_one_is_named(story):
    result = story("0.5.12", "three at once")
    (row,) = found(result, "engine_rejects")
    assert "language_only" in row["fields"]
    assert "enforce_piecewise_cuda_graph" not in row["fields"]


@pytest.mark.parametrize("version", ALL)
def test_single_batch_overlap_does_nothing_for_a_dense_model(story, version):
    result = story(version, "overlap")
    assert outcome(result, "--enable-single-batch-overlap") == "not honoured"
    (row,) = found(result, "overlap_without_experts")
    assert row["severity"] == "error"
    assert "the model has no experts" in row["text"]


def test_a_flag_that_stores_nothing_is_not_honoured(story):
    result = story("0.5.12", "removed")
    assert outcome(result, "--enable-piecewise-cuda-graph") == "not honoured"
    (row,) = found(result, "not_honoured")
    assert "Use --enforce-piecewise-cuda-graph" in row["hint"]


@pytest.mark.parametrize("version", ALL)
def test_speculative_steps_without_an_algorithm_are_not_honoured(story, version):
    result = story(version, "lone")
    assert outcome(result, "--speculative-num-steps") == "not honoured"
    assert found(result, "speculative_without_algorithm")


@pytest.mark.parametrize("version", ALL)
def test_draft_tokens_are_adjusted(story, version):
    result = story(version, "draft tokens")
    assert outcome(result, "--speculative-num-draft-tokens") == "adjusted"
    (row,) = [row for row in found(result, "adjusted") if "draft-tokens" in row["text"]]
    assert row["severity"] == "warning"
    assert row["text"] == "--speculative-num-draft-tokens becomes 4, asked 8"
    assert "speculative_num_steps + 1" in row["hint"]


@pytest.mark.parametrize("version", ALL)
def test_abbreviations_are_refused_with_the_full_name(story, version):
    (row,) = found(story(version, "short"), "flag_abbreviated")
    assert row["hint"] == "nearest: --max-running-requests"


@pytest.mark.parametrize("version", OLD)
def test_a_refusal_names_what_would_help(story, version):
    (row,) = found(story(version, "no buffer"), "engine_rejects")
    assert "--mamba-scheduler-strategy" in row["text"]
