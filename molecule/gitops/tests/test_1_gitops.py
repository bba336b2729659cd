# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From one inventory to servers that follow it: what pull requests say, what merges do. The tests are one story, in order."""

from __future__ import annotations

import html
import json

import pytest
import testinfra
from forge import SECRETS

SERVERS = ("alpha", "beta")
LIMIT = ("-l", "alpha,beta,localhost")
HOST_VARS = "inventory/host_vars/{}/sglang_server.yml"


def flags(**values):
    return json.dumps({"sglang_server_flags": values})


@pytest.fixture(scope="session")
def machines():
    return {name: testinfra.get_host(f"podman://llmops-gitops{number}") for number, name in enumerate(SERVERS, 1)}


@pytest.fixture(scope="session")
def good(machines):
    return lambda name: machines[name].check_output("basename $(readlink /var/lib/llmops-inference/main/good)")


@pytest.fixture(scope="session")
def started(machines):
    return lambda name: machines[name].check_output("systemctl show sglang-main --property=InvocationID --value")


@pytest.fixture(scope="session")
def recorded(site):
    """What the branch of records says was deployed."""

    def read(name, path="deployed/{}.json"):
        site.git("fetch", "--quiet", "origin")
        return json.loads(site.git("show", f"origin/llmops/records:inventory/{path.format(name)}"))

    return read


def playbook(site, name, *words):
    status, output = site.play(f"llmops.inference.{name}", *words)
    assert status == 0, output[-5000:]


def set_baseline(folder, factor):
    """Makes the one measured start of a baseline three, a percent apart, and scales it.

    On a test machine with other work throughput differs by factors from one minute to the next, and so does what this host's records say of its starts.
    So what is to pass is held against a third of what was measured, and what is to be taken back against twenty times as much: a quiet and large machine.
    """
    name = json.loads((folder / "baseline.json").read_text())["baselines"]["decode"]["records"][0]
    record = json.loads((folder / name).read_text())
    measured = record["starts"][0]
    record["starts"] = []
    for number, spread in enumerate((1.0, 0.99, 1.01)):
        start = json.loads(json.dumps(measured))
        start["invocation"] = f"{number}{start['invocation'][1:]}"
        for repetition in start["points"][0]["repetitions"]:
            repetition["output_tok_per_s"] = round(repetition["output_tok_per_s"] * factor * spread, 2)
        record["starts"].append(start)
    (folder / name).write_text(json.dumps(record, sort_keys=True, indent=1))


def test_the_first_merge_deploys_every_server(site, machines, good, recorded):
    commit = site.begin()
    snapshot = site.work / "inventory" / "snapshots" / "alpha"
    assert json.loads((snapshot / "model.json").read_text())["weights"]["by_dtype"]
    assert (snapshot / "model" / "config.json").is_file() and not (snapshot / "gpu.json").exists()
    status, output, _clone = site.ci("deploy.sh", *LIMIT, secrets=True)
    assert status == 0, output[-6000:]
    for name in SERVERS:
        told = recorded(name)
        # The id that is rendered without the host is the one that the host has.
        assert (told["release"], told["commit"], told["dirty"]) == (good(name), commit, False)
        assert set(told["secrets"]) == {"api_key"} and told["secrets"]["api_key"].startswith("vaulted ")
        header = f"Authorization: Bearer {SECRETS['api_key']}"
        answer = machines[name].run("curl -s -o /dev/null -w '%%{http_code}' -H %s http://127.0.0.1:30000/v1/models", header)
        assert answer.stdout == "200"
    assert site.git("rev-parse", "origin/main") == commit, "a deployment never pushes to main"


def test_what_is_deployed_is_not_deployed_again(site, started):
    before = {name: started(name) for name in SERVERS}
    status, output, _clone = site.ci("deploy.sh", *LIMIT, secrets=True)
    assert status == 0, output[-6000:]
    assert "alpha" not in output.split("PLAY RECAP")[-1], "a server that has what main asks for is not even connected to"
    assert {name: started(name) for name in SERVERS} == before


def test_baselines_are_accepted_in_a_commit(site):
    playbook(site, "benchmark", "-l", "alpha,beta", "-e", "sglang_benchmark_accept=true")
    for name in SERVERS:
        set_baseline(site.work / "inventory" / "benchmarks" / name, 1 / 3)
    site.commit("Accept what decode does now as the baseline")


# Name -> host, the flag, the verdict, and what the comment says of it.
REJECTED = {
    "misspelt": ("alpha", "max_runing_requests: 8", "rejected", ["max_runing_requests", "did you mean max_running_requests"]),
    "language": ("ct129", "language_only: true", "rejected", ["--encoder-urls", "sglang_server_flags.language_only", "_handle_encoder_disaggregation"]),
    "silent": ("alpha", "enable_single_batch_overlap: true", "not honoured", ["enable_single_batch_overlap", "no experts"]),
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_bad_flag_dies_in_the_pull_request(site, name):
    host, flag, verdict, words = REJECTED[name]
    path = site.work / HOST_VARS.format(host)
    path.parent.mkdir(parents=True, exist_ok=True)
    site.git("checkout", "--quiet", "-B", name, "origin/main")
    text = path.read_text() if path.exists() else "sglang_server_flags:\n"
    site.branch(name, f"Try {name}", **{HOST_VARS.format(host): text.replace("sglang_server_flags:\n", f"sglang_server_flags:\n  {flag}\n")})
    status, comment, document = site.check(name)
    assert status == 2
    assert (document["verdict"], [row["host"] for row in document["hosts"]]) == (verdict, [host])
    told = html.unescape(comment)
    assert not [word for word in words if word not in told], comment
    assert comment.startswith("<!-- llmops.inference check -->")


def test_a_comment_reaches_no_server(site):
    path = site.work / "inventory" / "group_vars" / "cpu" / "sglang.yml"
    site.branch("comment", "Say more", **{"inventory/group_vars/cpu/sglang.yml": f"# Only words.\n{path.read_text()}"})
    status, _comment, document = site.check("comment")
    assert (status, document["verdict"], document["hosts"]) == (0, "nothing", [])
    assert document["unchanged"] == 3


def test_a_group_change_reaches_its_servers_and_costs_one_question(site):
    path = site.work / "inventory" / "group_vars" / "cpu" / "sglang.yml"
    site.branch(
        "useful", "Let twice as many requests run", **{"inventory/group_vars/cpu/sglang.yml": path.read_text().replace("requests: 8\n\n", "requests: 16\n\n")}
    )
    status, comment, document = site.check("useful")
    assert status == 0, comment
    assert [row["host"] for row in document["hosts"]] == list(SERVERS)
    assert document["preflights"]["distinct"] == 2, "before and after, for both servers together"
    (flag,) = document["hosts"][0]["flags"]
    assert (flag["flag"].lstrip("-").replace("-", "_"), flag["before"], flag["after"]) == ("max_running_requests", 8, 16)
    assert "`alpha`, `beta`" in comment and "of decode at concurrency 8 against" in comment
    _status, _comment, again = site.check("useful")
    assert again["preflights"]["cached"] == 2


def test_a_merge_deploys_it_through_the_gate(site, good, recorded):
    before = {name: good(name) for name in SERVERS}
    commit = site.merge("useful")
    status, output, clone = site.ci("deploy.sh", *LIMIT, secrets=True)
    assert status == 0, output[-6000:]
    assert output.count("gate    passed") == 2, output[-6000:]
    for name in SERVERS:
        assert recorded(name)["release"] == good(name) != before[name]
        assert recorded(name)["commit"] == commit
    history = (clone / "reports" / "history.md").read_text()
    assert "Let twice as many requests run" in history and "max_running_requests" in history.replace("\\", "")


def test_three_merges_during_one_deployment_all_arrive(site, good, recorded):
    """CI drops what is queued behind a run: the last one has to bring all of them."""
    for name, host, value in (("one", "alpha", 15), ("two", "beta", 14)):
        (site.work / "inventory" / "host_vars" / host).mkdir(parents=True, exist_ok=True)
        site.branch(name, f"Change {host}", **{HOST_VARS.format(host): flags(max_running_requests=value)})
        site.merge(name)
    site.branch("three", "Say more", **{"README.md": "Ours.\n"})
    commit = site.merge("three")
    before = {name: good(name) for name in SERVERS}
    status, output, _clone = site.ci("deploy.sh", *LIMIT, secrets=True)
    assert status == 0, output[-6000:]
    for name in SERVERS:
        assert good(name) != before[name]
        assert (recorded(name)["release"], recorded(name)["commit"]) == (good(name), commit)


def test_a_change_that_makes_it_slower_ends_at_the_first_server(site, machines, good, recorded, started):
    """One request at a time instead of sixteen: a quarter of the throughput at eight clients."""
    path = site.work / "inventory" / "group_vars" / "cpu" / "sglang.yml"
    slow = path.read_text().replace("requests: 16\n\n", "requests: 1\n\n")
    before = {name: (good(name), started(name)) for name in SERVERS}
    site.git("checkout", "--quiet", "-B", "main", "origin/main")
    for name in SERVERS:
        set_baseline(site.work / "inventory" / "benchmarks" / name, 60)
    site.commit("Judge by what decode does when the machine is quiet")
    site.branch("slow", "One at a time", **{"inventory/group_vars/cpu/sglang.yml": slow, **{HOST_VARS.format(host): "{}\n" for host in SERVERS}})
    status, _comment, document = site.check("slow")
    assert (status, len(document["hosts"])) == (0, 2), "what it costs is only seen when it is measured"
    commit = site.merge("slow")
    status, output, clone = site.ci("deploy.sh", *LIMIT, secrets=True)
    assert status != 0
    assert "is worse by" in " ".join(output.split()) and "is serving again" in " ".join(output.split()), output[-6000:]
    assert good("alpha") == before["alpha"][0] and (good("beta"), started("beta")) == before["beta"], "the second server was not touched"
    assert recorded("alpha")["commit"] != commit
    history = (clone / "reports" / "history.md").read_text()
    assert "One at a time" in history and "**slower** than the accepted baseline" in history
    site.git("fetch", "--quiet", "origin")
    assert "slower" in site.git("log", "-1", "--format=%B", "origin/llmops/records"), "the commit of the records says what was measured"


def test_taking_it_back_restarts_nothing(site, started):
    before = {name: started(name) for name in SERVERS}
    site.git("checkout", "--quiet", "-B", "main", "origin/main")
    site.git("revert", "--no-edit", "-m", "1", "HEAD")
    site.git("push", "--quiet", "origin", "main")
    status, output, _clone = site.ci("deploy.sh", *LIMIT, secrets=True)
    assert status == 0, output[-6000:]
    assert {name: started(name) for name in SERVERS} == before


def test_drift_is_found_and_repaired_when_asked(site, machines, started):
    status, output, clone = site.ci("drift.sh", *LIMIT, secrets=True)
    assert status == 0, output[-6000:]
    assert "no drift: 2 hosts are what the inventory says" in (clone / "reports" / "drift.md").read_text()
    unit = "/etc/systemd/system/sglang-main.service"
    machines["beta"].check_output(f"sed -i 's/^RestartSec=.*/RestartSec=99/' {unit} && systemctl daemon-reload")
    before = started("beta")
    status, output, clone = site.ci("drift.sh", *LIMIT, secrets=True)
    assert status != 0
    assert "the unit in /etc was edited by hand" in (clone / "reports" / "drift.md").read_text()
    assert "RestartSec=99" in machines["beta"].file(unit).content_string, "nothing on a host changes unless it is asked for"
    status, output, clone = site.ci("drift.sh", *LIMIT, "-e", "sglang_drift_repair=true", secrets=True)
    assert status == 0, output[-6000:]
    assert "RestartSec=99" not in machines["beta"].file(unit).content_string and started("beta") == before
