# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret shows, wherever somebody may read what a pull request, deployments and their failures leave behind; but for what SECURITY.md names.

A decoy rides along: a word under a name that is none of a secret's, and shown on purpose elsewhere. Where it is not found, nobody has looked.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import tempfile
import urllib.parse
from html import escape
from pathlib import Path

import pytest
import yaml
from forge import FILES, SECRETS, VAULT
from leaks import Artefact, below, committed, find
from machines import Machine

HERE = Machine("controller")
ALPHA = Machine("alpha", "llmops-gitops1")
LIMIT = ("-l", "alpha,localhost")
PLANTED = {**SECRETS, "vault_password": VAULT}
DECOY = {"decoy": "Pumice6b1e:%s$HOME'\"Scoria90d4"}
QUOTED = {
    "plain": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64-behind-one": lambda text: base64.b64encode(f"x{text}".encode()).decode(),
    "base64-of-urls-behind-two": lambda text: base64.urlsafe_b64encode(f"xy{text}".encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "form": urllib.parse.quote_plus,
    "json": json.dumps,
    "yaml": yaml.safe_dump,
    "yaml-folded": lambda text: yaml.safe_dump({"key": f"{'word ' * 30}{text}"}, default_style='"'),
    "python": repr,
    "shell": shlex.quote,
    "shell-escaped": lambda text: re.sub(r"(\W)", r"\\\1", text),
    "systemd": lambda text: text.replace("%", "%%").replace("$", "$$").replace('"', '\\"'),
    "html": escape,
    "cut": lambda text: text[: len(text) // 2],
    "cut-at-the-front": lambda text: text[len(text) // 2 :],
}
# What the engine ignores without a word, and what it refuses only when it starts.
SILENT = {"sglang_server_flags": {"max_running_requests": 8, "enable_single_batch_overlap": True}}
DEAD = {"sglang_server_flags": {"max_running_requests": 8, "tokenizer_path": "/srv/models"}}
VARIABLES = {
    "sglang_server_api_key": "{{ vault_sglang_server_api_key }}",
    "sglang_server_admin_api_key": "{{ vault_sglang_server_admin_api_key }}",
    "sglang_model_hub_token": "{{ vault_sglang_model_hub_token }}",
    "sglang_server_env": {
        "HF_TOKEN": "{{ vault_sglang_model_hub_token }}",
        "https_proxy": "http://planted:{{ vault_proxy_password | urlencode }}@127.0.0.1:3128",
        "LABEL": DECOY["decoy"],
    },
    # One short measurement: how fast it is, is another story.
    "sglang_server_gate": {},
    "sglang_benchmark_concurrency": [1],
    "sglang_benchmark_requests": 1,
    "sglang_benchmark_output_tokens": 8,
    "sglang_benchmark_repetitions": 1,
    "sglang_benchmark_warmup_repetitions": 1,
}
# Of a host, all that others than root can read, and what root's tools leave behind. The journal is asked for its entries.
READ = ("etc", "run/systemd/system", "run/systemd/transient", "run/llmops-inference", "tmp", "root", "var/log", "var/lib/llmops-inference")
READ += ("var/lib/sglang-main", "var/cache/llmops-inference", "var/cache/sglang-main")
STORE = "/var/lib/llmops-inference/main/secrets"
UNITS = ("sglang-main.service", "leak.service")


@pytest.fixture(scope="module")
def seen():
    """What was seen of the processes of the controller and of the host while all that follows ran."""
    return {HERE.name: [], ALPHA.name: []}


@pytest.fixture(scope="module")
def outputs(site, seen):
    """A pull request that is refused, one that is deployed and measured, one that is planned, fails and is rolled back; drift and reports; and the decoy."""
    home = site.folder / "ansible-home"
    log = site.folder / "ansible.log"
    loud = {"ANSIBLE_VERBOSITY": "3", "ANSIBLE_HOME": str(home), "ANSIBLE_LOG_PATH": str(log)}
    host_vars = "inventory/host_vars/alpha/{}.yml"
    if not (site.work / "inventory" / "snapshots" / "alpha").is_dir():
        site.begin()
        assert site.ci("deploy.sh", *LIMIT, secrets=True)[0] == 0
    found = []

    def ran(name, status, output, expect):
        found.append(Artefact(f"output:{name}", output.encode()))
        assert (status == 0) == expect, output[-6000:]

    def propose(name, flags):
        vault = {"sglang_server_admin_api_key": SECRETS["admin_api_key"], "sglang_model_hub_token": SECRETS["hub_token"], "proxy_password": SECRETS["proxy"]}
        files = {host_vars.format("sglang_server"): json.dumps(flags), host_vars.format("secrets"): json.dumps(VARIABLES)}
        return site.branch(name, name, **files, **{host_vars.format("vault"): site.vaulted(**vault)})

    with HERE.watched(seen[HERE.name]), ALPHA.watched(seen[ALPHA.name]):
        propose("secrets-refused", SILENT)
        status, output, clone = site.judge("secrets-refused", **loud)
        ran("check", status, output, False)
        assert json.loads((clone / "check" / "check.json").read_text())["verdict"] == "not honoured"

        propose("secrets", {"sglang_server_flags": {"max_running_requests": 8}})
        site.merge("secrets")
        status, output, clone = site.ci("deploy.sh", *LIMIT, "-vvv", secrets=True, **loud)
        ran("deploy", status, output, True)
        ran("benchmark", *site.play("llmops.inference.benchmark", *LIMIT, folder=clone, **loud), True)

        propose("secrets-dead", DEAD)
        status, output, _clone = site.ci("plan.sh", "alpha", ref="secrets-dead", secrets=True, **loud)
        ran("plan", status, output, True)
        site.merge("secrets-dead")
        status, output, clone = site.ci("deploy.sh", *LIMIT, "-vvv", "--diff", secrets=True, **loud)
        ran("deploy-that-fails", status, output, False)
        assert "is serving again" in " ".join(output.split()), output[-6000:]
        status, output, _clone = site.ci("drift.sh", "-l", "alpha", secrets=True, **loud)
        ran("drift", status, output, False)
        for name in ("status", "report", "history"):
            ran(name, *site.play(f"llmops.inference.{name}", "-l", "alpha,localhost", folder=clone, **loud), True)
        ran("leak", *site.play(str(FILES / "leak.yml"), "-e", json.dumps(DECOY), folder=clone, **loud), True)
    (home / "tmp" / "leak").write_text(DECOY["decoy"])
    return found


@pytest.fixture(scope="module")
def on_alpha(outputs):
    return ALPHA.files(*READ, without="var/log/journal")


@pytest.fixture(scope="module")
def journal(outputs):
    """Entries of the host's whole journal."""
    return ALPHA.run("journalctl", "--output=export", "--no-pager").split(b"\n\n")


def is_shown_by_the_engine(entry):
    """True of an entry of the journal in which the engine says what it was started with."""
    of_the_unit = re.search(rb"^_SYSTEMD_UNIT=sglang-main\.service$", entry, re.MULTILINE)
    return bool(of_the_unit and re.search(rb"^MESSAGE=.*server_args=", entry, re.MULTILINE))


@pytest.fixture(scope="module")
def artefacts(site, outputs, seen, on_alpha, journal):
    """All that somebody may read, but for what the engine shows."""
    found = [*outputs, committed("origin", site.origin)]
    for clone in (site.work, *sorted((site.folder / "ci").iterdir())):
        found += [*below(f"clone:{clone.name}", clone), committed(f"clone:{clone.name}", clone)]
    for name in ("ansible-home", "check-cache"):
        found += below(name, site.folder / name)
    found.append(Artefact("ansible.log", (site.folder / "ansible.log").read_bytes()))
    for left in Path(tempfile.gettempdir()).glob("llmops-*"):
        found += below("controller:tmp", left)
    found += [Artefact(f"{name}: command line", row.data) for name, rows in seen.items() for row in rows if row.what == "command"]
    found += [Artefact(f"alpha:{file.path}", f"{file.path}\n".encode() + file.data) for file in on_alpha if not file.path.startswith(f"{STORE}/")]
    found += [Artefact("alpha: journal", entry) for entry in journal if not is_shown_by_the_engine(entry)]
    found += ALPHA.artefacts(*(f"systemctl {verb} {unit}" for unit in UNITS for verb in ("cat", "show", "status")), "systemctl show-environment")
    return found


@pytest.mark.parametrize("quoted", QUOTED.values(), ids=QUOTED.keys())
def test_a_secret_is_found_however_it_is_written(quoted):
    secrets = {**PLANTED, **DECOY}
    texts = [Artefact(name, f"before {quoted(secret)} after".encode()) for name, secret in secrets.items()]
    assert [(leak.place, leak.secret) for leak in find(texts, secrets)] == [(name, name) for name in secrets]


PLACES = (
    *(f"output:{name}" for name in ("check", "deploy", "benchmark", "plan", "deploy-that-fails", "leak")),
    r"clone:.*:check/check\.json",
    r"clone:.*:check/check\.md",
    r"clone:.*:ci\.log",
    r"clone:.*:inventory/benchmarks/alpha/.*\.json",
    r"clone:.*:inventory/benchmarks/alpha/.*\.md",
    r"clone:.*:inventory/benchmarks/index\.html",
    r"clone:.*:reports/history\.md",
    r"clone:.*:objects",
    "origin:objects",
    "ansible-home:tmp/leak",
    r"ansible\.log",
    "controller: command line",
    "alpha: command line",
    "alpha: journal",
    *(f"alpha: systemctl {verb} leak.service" for verb in ("cat", "show", "status")),
    "alpha:/run/systemd/system/leak.service",
    r"alpha:/var/lib/llmops-inference/main/releases/\w+/environment",
    *(f"alpha:/{folder}/leak" for folder in ("tmp", "var/log", "var/lib/llmops-inference", "var/cache/llmops-inference", r"root/\.ansible")),
)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_shown_is_found(artefacts, place):
    """Otherwise it would say nothing that no secret is found."""
    found = {leak.place for leak in find(artefacts, DECOY)}
    assert [one for one in found if re.fullmatch(place, one)], sorted(found)


def test_no_secret_shows(artefacts):
    assert find(artefacts, PLANTED) == []


def test_the_store_of_secrets_is_roots(on_alpha):
    store = {file.path: (file.mode, file.owner) for file in on_alpha if file.path.startswith(STORE)}
    assert store.pop(STORE) == ("700", "root:root")
    assert set(store) >= {f"{STORE}/secrets.yaml", f"{STORE}/environment"}
    assert set(store.values()) == {("600", "root:root")}


def test_nothing_of_a_job_is_left(site, on_alpha):
    """A module that ran, or was to run, holds its options in a form that is not looked into here."""
    assert [file.path for file in on_alpha if re.match(r"/root/\.ansible(_async)?/", file.path) and file.mode != "700"] == ["/root/.ansible/leak"]
    assert [path.name for path in (site.folder / "ansible-home").rglob("*") if path.is_file()] == ["leak"]


class TestWhatTheEngineShows:
    """The table at the end of SECURITY.md: nothing more, to nobody else."""

    def test_the_line_of_a_start_has_the_keys(self, journal):
        entries = [Artefact("journal", entry) for entry in journal if is_shown_by_the_engine(entry)]
        assert {leak.secret for leak in find(entries, PLANTED)} == {"api_key", "admin_api_key"}

    def test_the_journal_is_for_its_readers(self):
        paths = ALPHA.files("var/log/journal")
        groups = {file.owner.partition(":")[2] for file in paths}
        assert groups <= {"systemd-journal", "adm", "root"} and any(file.path.endswith(".journal") for file in paths)
        assert not [file for file in paths if file.path.endswith(".journal") and file.mode[-1] != "0"]

    def test_its_own_information_is_behind_the_key(self):
        assert ALPHA.run("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "http://127.0.0.1:30000/server_info") == b"401"

    def test_environments_are_read_by_their_owners(self, seen, outputs):
        """The server's, and that of the load generator."""
        rows = [row for row in seen["alpha"] if row.what == "environment"]
        user = int(ALPHA.run("id", "--user", "sglang"))
        found = {(int(leak.place), leak.secret) for leak in find([Artefact(str(row.owner), row.data) for row in rows], PLANTED)}
        assert found == {(user, "hub_token"), (user, "proxy"), (0, "api_key")}
        assert {row.mode for row in rows} == {"400"}
        assert all(b"OPENAI_API_KEY=" in row.data for row in rows if row.owner == 0 and find([Artefact("", row.data)], PLANTED))
