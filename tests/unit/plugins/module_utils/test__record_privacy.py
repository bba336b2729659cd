# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_privacy import clean, leaks
from ansible_collections.llmops.inference.plugins.module_utils._redact import MASK
from ansible_collections.llmops.inference.tests.unit.benchmark_records import point, record, repetition, start


def with_argv(*argv):
    return record(release={"argv": list(argv)})


def with_error(text):
    return record(starts=[start(point([repetition(errors=[text])]))])


@pytest.mark.parametrize(
    "dirty, places",
    [
        pytest.param(record(), [], id="clean"),
        pytest.param(with_argv("--api-key", "s3 cret", "--port", "1"), ["release.argv.1"], id="argv"),
        pytest.param(with_argv("--api-key=s3cret"), ["release.argv.0"], id="argv-in-one-word"),
        pytest.param(with_argv("--model-path", "/home/alice/models/m"), ["release.argv.1"], id="home"),
        pytest.param(with_argv("--model-path", "/srv/models/m", "--x=/srv/home/y", "/homes/x", "/rooted"), [], id="no-home"),
        pytest.param(record(environment={"HF_TOKEN": "x", "NCCL_DEBUG": "INFO"}), ["environment.HF_TOKEN"], id="environment"),
        pytest.param(record(environment={"HF_HOME": "/root/.cache/hf"}), ["environment.HF_HOME"], id="home-of-root"),
        pytest.param(record(flags=[{"name": "api_key", "value": "s3cret", "layer": "host"}]), ["flags.0.value"], id="flag"),
        pytest.param(record(effective={"api_key": "s3cret", "admin_api_key": None}), ["effective.api_key"], id="effective"),
        pytest.param(with_error("401 for Bearer abcdefgh"), ["starts.0.points.0.repetitions.0.errors.0"], id="error"),
        pytest.param(with_error("No such file: '/Users/bob/data.jsonl'"), ["starts.0.points.0.repetitions.0.errors.0"], id="path-in-an-error"),
    ],
)
def test_leaks(dirty, places):
    assert leaks(dirty) == places
    assert leaks(clean(dirty)) == [] and (places or clean(dirty) == dirty)


def test_what_is_left_of_it():
    found = clean(record(release={"argv": ["--api-key", "k", "--model-path", "/home/alice/m"]}, environment={"HF_TOKEN": "t", "PATH": "/root/bin:/bin"}))
    assert found["release"]["argv"] == ["--api-key", MASK, "--model-path", "~/m"]
    assert found["environment"] == {"HF_TOKEN": MASK, "NCCL_P2P_LEVEL": "PHB", "PATH": "~/bin:/bin"}


def test_known_secrets():
    dirty = record(effective={"note": "proxy pa55word"}, environment={"NOTE": "pa55word"}, flags=[{"name": "x", "value": ["pa55word"], "layer": "host"}])
    assert sorted(leaks(dirty, iter(["pa55word"]))) == ["effective.note", "environment.NOTE", "flags.0.value.0"]
    assert leaks(dirty) == [] and "pa55word" not in str(clean(dirty, ["pa55word"]))


def test_the_original_stays():
    dirty = with_argv("--api-key", "s3cret")
    clean(dirty)
    assert dirty == with_argv("--api-key", "s3cret")


def test_a_record_of_nothing():
    assert clean({}) == {} and leaks({}) == []
