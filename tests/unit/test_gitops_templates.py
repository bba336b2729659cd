# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository that the playbook init writes: no way from a pull request to a secret, and the scripts of its CI, run against a bare repository."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import shutil
import stat
import subprocess
import urllib.request
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.plugin_utils import _snapshots

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "roles" / "sglang_gitops" / "templates"
VARIABLES = yaml.safe_load((ROOT / "roles" / "sglang_gitops" / "vars" / "main.yml").read_text())
FILES = VARIABLES["__sglang_gitops_files"] + VARIABLES["__sglang_gitops_example"]
VALUES = {"sglang_gitops_branch": "main", "sglang_gitops_collection_version": "1.2.3", "__sglang_gitops_source": ""}
SCRIPTS = sorted(TEMPLATES.glob("ci/*.sh"))
WORKFLOWS = {path.stem: path for path in sorted(TEMPLATES.glob("github/workflows/*.yml"))}
MARKER = "<!-- llmops.inference check -->"
ACTIONS = {"actions/cache@v4", "actions/checkout@v4", "actions/upload-artifact@v4", "actions/download-artifact@v4"}
NOT_JUDGED = f"{MARKER}\n### Not judged: the check ended without a report\n\n"
RECORDED = ("inventory/benchmarks/ct129/a.md", "inventory/deployed/ct129.json", "reports/history.md")


def rendered(path):
    """The text of a template; its variables are all that is replaced."""
    return re.sub(r"@\{ (\w+) \}@", lambda found: VALUES[found[1]], path.read_text())


def workflow(name):
    return yaml.safe_load(rendered(WORKFLOWS[name]))


def steps(name):
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


def gitlab():
    return yaml.safe_load(rendered(TEMPLATES / "gitlab-ci.yml"))


def scripts_of(job):
    """All lines that a job of GitLab runs."""
    base = gitlab()[job["extends"]] if "extends" in job else {}
    return "\n".join([*base.get("before_script", []), *job["script"]])


def write_repository(folder):
    """Writes what the role writes; the test of the role itself is the scenario that runs the playbook."""
    for item in FILES:
        path = folder / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(TEMPLATES / item.get("template", item["path"])))
        path.chmod(int(item.get("mode", "0644"), 8))


def write_text_or_link(path, text):
    """Writes a file, or the link that `->TARGET` stands for."""
    if text.startswith("->"):
        path.symlink_to(text[2:])
    else:
        path.write_text(text)


def test_the_role_lists_every_template_once():
    listed = [item.get("template", item["path"]) for item in FILES]
    there = [str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*") if path.is_file()]
    assert sorted(set(listed)) == sorted(there)
    assert len({item["path"] for item in FILES}) == len(FILES)
    assert VARIABLES["__sglang_gitops_files"][0]["path"] == VARIABLES["__sglang_gitops_mark"]
    assert VARIABLES["__sglang_gitops_example"][-1]["path"] == VARIABLES["__sglang_gitops_hosts"]


@pytest.mark.parametrize("path", sorted(path for path in TEMPLATES.rglob("*") if path.is_file()), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_a_template_holds_nothing_that_jinja_takes_for_its_own(path):
    assert not re.search(r"\{[%#]", path.read_text())
    if path.suffix == ".yml":
        yaml.load(rendered(path), Loader=yaml.BaseLoader)


def test_no_workflow_runs_a_pull_request_with_the_rights_of_the_repository():
    assert len(WORKFLOWS) == 5
    for path in WORKFLOWS.values():
        assert "pull_request_target" not in path.read_text()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_use_the_forges_own_actions_only(name):
    assert {step["uses"] for step in steps(name) if "uses" in step} <= ACTIONS


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_script_never_holds_an_expression(name):
    """What a pull request names itself (a branch, a title) would become part of the script."""
    assert [step["run"] for step in steps(name) if "${{" in step.get("run", "")] == []


def test_the_check_may_read_and_knows_no_secret():
    text, check = WORKFLOWS["check"].read_text(), workflow("check")
    assert list(check["on"]) == ["pull_request"]
    assert check["permissions"] == {"contents": "read"}
    (job,) = check["jobs"].values()
    assert "permissions" not in job and "environment" not in job and "self-hosted" not in str(job["runs-on"])
    assert "secrets." not in text and "github.token" not in text
    (checkout,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


def test_the_comment_takes_the_artefact_as_data():
    comment = workflow("comment")
    assert comment["on"] == {"workflow_run": {"workflows": ["check"], "types": ["completed"]}}
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    uses = [step["uses"] for step in steps("comment") if "uses" in step]
    assert uses == ["actions/download-artifact@v4"]
    (script,) = [step["run"] for step in steps("comment") if "run" in step]
    assert not re.search(r"^\s*(source|\.|bash|sh|eval|exec|python3?|ci/\S+)\s", script, re.MULTILINE)
    assert "secrets." not in WORKFLOWS["comment"].read_text()


def test_keys_are_in_jobs_behind_an_environment_only():
    for name in WORKFLOWS:
        for job in workflow(name)["jobs"].values():
            if "secrets." in str(job):
                assert job["environment"] == ("production-plan" if name == "plan" else "production")
                assert job["runs-on"] == ["self-hosted", "llmops"]


def test_a_deployment_starts_from_the_branch_and_not_from_its_own_records():
    deploy = workflow("deploy")
    assert set(deploy["on"]) == {"push", "workflow_dispatch"}
    assert deploy["on"]["push"] == {"branches": ["main"], "paths-ignore": ["inventory/benchmarks/**", "inventory/deployed/**", "reports/**"]}
    assert deploy["concurrency"] == {"group": "deploy", "cancel-in-progress": False}
    assert deploy["permissions"] == {}
    assert all(job["if"] for job in deploy["jobs"].values())


def test_no_other_workflow_takes_the_place_in_which_a_deployment_waits():
    """GitHub keeps one waiting run of a group, and drops it for a newer one."""
    groups = {name: workflow(name)["concurrency"]["group"] for name in WORKFLOWS}
    assert len(set(groups.values())) == len(WORKFLOWS), groups


def test_a_plan_is_of_a_commit_that_somebody_has_read(tmp_path):
    assert list(workflow("plan")["on"]) == ["workflow_dispatch"]
    first = steps("plan")[0]
    for commit, good in (("0" * 40, True), ("main", False), ("0" * 39 + "g", False)):
        done = subprocess.run(["bash", "-e", "-c", first["run"]], env={**os.environ, "COMMIT": commit}, cwd=tmp_path, check=False)
        assert (done.returncode == 0) is good


def test_gitlab_runs_merge_requests_apart_from_the_hosts():
    jobs = {name: job for name, job in gitlab().items() if isinstance(job, dict) and not name.startswith(".")}
    assert set(jobs) == {"check", "comment", "plan", "deploy", "drift"}
    for name, job in jobs.items():
        conditions = [rule["if"] for rule in job["rules"]]
        if name in ("check", "comment"):
            assert all('$CI_PIPELINE_SOURCE == "merge_request_event"' in condition for condition in conditions)
            assert job["tags"] == ["llmops-check"] and "environment" not in job
        else:
            assert all('$CI_COMMIT_REF_PROTECTED == "true"' in condition and "merge_request" not in condition for condition in conditions)
            assert job["environment"] == ("production-plan" if name == "plan" else "production")
            assert gitlab()[job["extends"]]["resource_group"] == "production"
    assert jobs["comment"]["variables"] == {"GIT_STRATEGY": "none"} and "ci/" not in scripts_of(jobs["comment"])
    assert jobs["plan"]["rules"][0]["when"] == "manual"


def test_gitlab_does_not_deploy_for_its_own_records():
    (push,) = [rule for rule in gitlab()["deploy"]["rules"] if "changes" in rule]
    patterns = [re.compile(re.escape(pattern).replace(r"\*\*/\*", ".+").replace(r"\*", "[^/]*") + r"\Z") for pattern in push["changes"]]
    reached = {path: any(pattern.match(path) for pattern in patterns) for path in (*RECORDED, *(item["path"] for item in FILES))}
    assert not any(reached[path] for path in RECORDED)
    assert all(reached[item["path"]] for item in VARIABLES["__sglang_gitops_example"] if item["path"].endswith((".yml", ".json")))


def gitlabs_comment(monkeypatch, folder, notes=()):
    """Runs the comment's script of GitLab where the artefact lies; returns how it ended, and the calls of the forge's API that write."""
    (line,) = gitlab()["comment"]["script"]
    (folder / "comment.py").write_text(line.partition("<<'END'\n")[2].partition("\nEND\n")[0])
    calls = []

    def answer(request, timeout):
        assert timeout
        if request.data:
            calls.append((request.method, request.full_url, json.loads(request.data)["body"]))
        return io.BytesIO(json.dumps({"id": 3} if request.full_url.endswith("/user") else list(notes)).encode())

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    monkeypatch.chdir(folder)
    own = {
        "CI_API_V4_URL": "https://forge/api",
        "CI_MERGE_REQUEST_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PIPELINE_URL": "https://forge/pipelines/9",
    }
    for name, value in {**own, "SGLANG_COMMENT_TOKEN": "t"}.items():
        monkeypatch.setenv(name, value)
    try:
        runpy.run_path("comment.py")
    except SystemExit as end:
        return end.code, calls
    return None, calls


def test_gitlabs_comment_is_posted_and_a_later_one_replaces_it(monkeypatch, tmp_path):
    (tmp_path / "check").mkdir()
    (tmp_path / "check/check.md").write_text(f"{MARKER}\nfine\n")
    url = "https://forge/api/projects/5/merge_requests/7/notes"
    assert gitlabs_comment(monkeypatch, tmp_path) == (None, [("POST", url, f"{MARKER}\nfine\n")])
    notes = [{"id": 40, "author": {"id": 4}, "body": MARKER}, {"id": 41, "author": {"id": 3}, "body": f"{MARKER}\nolder"}]
    assert gitlabs_comment(monkeypatch, tmp_path, notes) == (None, [("PUT", f"{url}/41", f"{MARKER}\nfine\n")])


@pytest.mark.parametrize("text", [None, f"hello\n{MARKER}\n", "->/proc/self/environ"], ids=["no-report", "no-marker", "link"])
def test_gitlabs_comment_says_that_there_is_no_report(monkeypatch, tmp_path, text):
    """An older comment, which perhaps says that the check passed, does not stay."""
    if text is not None:
        (tmp_path / "check").mkdir()
        write_text_or_link(tmp_path / "check/check.md", text)
    notes = [{"id": 41, "author": {"id": 3}, "body": f"{MARKER}\n### Passed"}]
    end, calls = gitlabs_comment(monkeypatch, tmp_path, notes)
    ((method, url, body),) = calls
    assert (method, url.rpartition("/")[2]) == ("PUT", "41")
    assert body.startswith(NOT_JUDGED) and "https://forge/pipelines/9" in body and len(body.splitlines()) == 4
    assert "no report" in end


def test_every_script_is_called_and_every_call_has_its_script():
    github = "\n".join(step.get("run", "") for name in WORKFLOWS for step in steps(name))
    on_gitlab = "\n".join(scripts_of(job) for job in gitlab().values() if isinstance(job, dict) and "script" in job)
    for text in (github, on_gitlab):
        assert set(re.findall(r"\bci/\w+\.sh", text)) == {f"ci/{path.name}" for path in SCRIPTS}
    hooks = yaml.safe_load((TEMPLATES / "pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    assert all(hook["language"] == "system" for repo in hooks for hook in repo["hooks"])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_sound(path, tmp_path):
    script = tmp_path / path.name
    script.write_text(rendered(path))
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert script.read_text().startswith("#!/usr/bin/env bash\n") and "set -euo pipefail\n" in script.read_text()
    assert [item["mode"] for item in FILES if item["path"] == f"ci/{path.name}"] == ["0755"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_pass_shellcheck(path, tmp_path):
    if not shutil.which("shellcheck"):
        pytest.skip("there is no shellcheck on PATH")
    script = tmp_path / path.name
    script.write_text(rendered(path))
    subprocess.run(["shellcheck", str(script)], check=True)


def test_versions_are_the_controllers():
    pins = dict(line.split("==") for line in (TEMPLATES / "requirements.txt").read_text().splitlines() if "==" in line)
    own = (ROOT / "requirements" / "controller.txt").read_text()
    assert "ansible-core" in pins
    assert [f"{name}=={version}" for name, version in pins.items() if f"\n{name}=={version} " not in own] == []


def test_the_example_is_that_of_the_guide():
    for path in sorted(TEMPLATES.glob("inventory/*_vars/**/*.yml")):
        own = ROOT / "inventories" / "example" / path.relative_to(TEMPLATES / "inventory")
        assert yaml.safe_load(path.read_text()) == yaml.safe_load(own.read_text()), path


def test_the_snapshot_is_one_that_the_collection_reads():
    snapshot = _snapshots.read(TEMPLATES / "inventory" / "snapshots", "ct129")
    model = yaml.safe_load((TEMPLATES / "inventory/group_vars/model_qwen3_6_27b/sglang_model.yml").read_text())
    path = f"/opt/sglang/models/{model['sglang_model_id'].replace('/', '--')}/{model['sglang_model_revision']}"
    assert (snapshot.model["path"], snapshot.model["revision"]) == (path, model["sglang_model_revision"])
    assert set(snapshot.facts) == set(_snapshots.FACTS) and snapshot.model_digest
    assert [gpu["name"] for gpu in snapshot.gpus["gpus"]] == ["NVIDIA RTX A6000"] * 2
    recorded = json.loads((ROOT / "tests/engines/models/qwen3.6-27b/config.json").read_text())
    assert json.loads((snapshot.model_dir / "config.json").read_text()) == recorded


# --- scripts, run ----------------------------------------------------------------------------------------------------------------------------------------

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": f"{what.lower()}@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
# Plays ansible-playbook: notes the call, and records a deployment as the rollout does.
FAKE = """#!/usr/bin/env bash
set -eu
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in
  *llmops.inference.rollout*)
    git status --porcelain >>"$CALLS.status"
    mkdir -p inventory/deployed inventory/benchmarks/ct129
    git rev-parse HEAD >inventory/deployed/ct129.json
    printf '**decode on ct129: %s tok/s (54 to 56)**\\n\\nmore\\n' "$RATE" >"inventory/benchmarks/ct129/$RATE.md"
    if [ -n "${RACE:-}" ]; then bash -c "$RACE"; fi
    exit "${ROLLOUT:-0}"
    ;;
  *llmops.inference.history*)
    mkdir -p reports
    ls inventory/benchmarks/ct129 >reports/history.md
    ;;
  *llmops.inference.check*)
    mkdir check
    printf 'the report\\n' >check/check.md
    exit "${CHECK:-0}"
    ;;
esac
"""


class Forge:
    """A bare repository, a clone of it where CI runs, and what stands in for programs that are not here."""

    def __init__(self, folder):
        self.folder, self.bare, self.clone, self.bin = folder, folder / "forge.git", folder / "clone", folder / "bin"
        self.environment = {
            **os.environ,
            **GIT,
            "CALLS": str(folder / "calls"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "LLMOPS_VENV": str(folder / "none"),
        }
        self.bin.mkdir()
        self.program("ansible-playbook", FAKE)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare), at=folder)
        self.git("clone", "--quiet", str(self.bare), str(self.clone), at=folder)
        write_repository(self.clone)
        self.git("checkout", "--quiet", "-b", "main")
        self.commit("the repository that init writes")
        self.git("config", "receive.denyNonFastForwards", "true", at=self.bare)

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(stat.S_IRWXU)

    def git(self, *words, at=None):
        done = subprocess.run(["git", *words], cwd=at or self.clone, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, message, push=True):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        if push:
            self.git("push", "--quiet", "origin", "main")
        return self.git("rev-parse", "HEAD")

    def tip(self, branch):
        return self.git("rev-parse", "--quiet", "--verify", f"refs/heads/{branch}", at=self.bare)

    def records(self, name):
        return self.git("show", f"llmops/records:{name}", at=self.bare)

    def ci(self, script, *words, **environment):
        done = subprocess.run([f"ci/{script}.sh", *words], cwd=self.clone, env={**self.environment, **environment}, check=False, capture_output=True, text=True)
        self.said = done.stdout + done.stderr
        return done.returncode

    def deploy(self, rate, **environment):
        return self.ci("deploy", RATE=rate, **environment)

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture(name="forge")
def _forge(tmp_path):
    if not shutil.which("git"):
        pytest.skip("there is no git on PATH")
    return Forge(tmp_path)


def test_a_deployment_leaves_its_records_on_their_branch(forge):
    main = forge.tip("main")
    assert forge.deploy("55.0") == 0, forge.said
    assert [call.split()[-1] for call in forge.calls()] == ["llmops.inference.rollout", "llmops.inference.history"]
    assert forge.tip("main") == main
    assert forge.records("inventory/deployed/ct129.json") == main
    assert forge.records("reports/history.md") == "55.0.md"
    message = forge.git("log", "-1", "--format=%an %ae%n%B", "llmops/records", at=forge.bare)
    assert message == f"name@test email@test\nRecords of {main[:12]}: ct129\n\ndecode on ct129: 55.0 tok/s (54 to 56)"
    assert forge.git("rev-list", "--parents", "-1", "llmops/records", at=forge.bare).split()[1:] == [main]
    assert forge.git("worktree", "list").count("\n") == 0


def test_a_second_deployment_adds_to_the_records(forge):
    forge.deploy("55.0")
    first = forge.tip("llmops/records")
    forge.git("clean", "-qfd")
    forge.git("checkout", "--quiet", "--", ".")
    (forge.clone / "inventory/hosts.yml").write_text("sglang: {hosts: {ct129: {}, ct130: {}}}\n")
    main = forge.commit("a second host")
    assert forge.deploy("56.0") == 0, forge.said
    assert forge.records("reports/history.md").split() == ["55.0.md", "56.0.md"]
    assert forge.records("inventory/deployed/ct129.json") == main
    assert "ct130" in forge.records("inventory/hosts.yml"), "the branch is main and the records"
    for older in (first, main):
        forge.git("merge-base", "--is-ancestor", older, "llmops/records", at=forge.bare)
    assert forge.tip("main") == main
    assert forge.git("diff", "--name-only", "main", "llmops/records", at=forge.bare).split() == [
        "inventory/benchmarks/ct129/55.0.md",
        "inventory/benchmarks/ct129/56.0.md",
        "inventory/deployed/ct129.json",
        "reports/history.md",
    ]


@pytest.mark.parametrize("how", [("--no-ff",), ("--squash",)], ids=["merged", "squashed"])
def test_records_that_were_taken_into_main_are_gone_on_from(forge, how):
    forge.deploy("55.0")
    forge.git("stash", "--quiet", "--include-untracked")
    forge.git("fetch", "--quiet", "origin")
    forge.git("merge", "--quiet", *how, "origin/llmops/records")
    main = forge.commit("records")
    assert forge.deploy("56.0") == 0, forge.said
    assert forge.records("reports/history.md").split() == ["55.0.md", "56.0.md"]
    assert forge.records("inventory/deployed/ct129.json") == main == forge.tip("main")


def test_a_failed_rollout_is_recorded_and_fails(forge):
    main = forge.tip("main")
    assert forge.deploy("55.0", ROLLOUT="2") == 2
    assert forge.records("inventory/deployed/ct129.json") == main == forge.tip("main")


def test_a_rollout_that_recorded_nothing_pushes_nothing(forge):
    forge.deploy("55.0")
    tip = forge.tip("llmops/records")
    assert forge.deploy("55.0") == 0, forge.said
    assert forge.tip("llmops/records") == tip


@pytest.mark.parametrize("first", [True, False], ids=["no branch yet", "branch there"])
def test_a_push_that_comes_second_is_put_onto_the_first(forge, first):
    if not first:
        forge.deploy("55.0")
        forge.git("clean", "-qfd")
        forge.commit("a change")
    other = forge.folder / "other"
    forge.git("clone", "--quiet", str(forge.bare), str(other), at=forge.folder)
    start = "main" if first else "origin/llmops/records"
    race = f"""set -eu; cd '{other}'; git checkout --quiet -B mine {start}; mkdir -p inventory/benchmarks/ct130 inventory/deployed
        echo theirs >inventory/benchmarks/ct130/1.md; echo theirs >inventory/deployed/ct129.json; git add .; git commit --quiet -m theirs
        git push --quiet origin HEAD:refs/heads/llmops/records"""
    assert forge.deploy("56.0", RACE=race) == 0, forge.said
    assert "attempt 1 of 5" in forge.said
    assert forge.records("inventory/benchmarks/ct130/1.md") == "theirs"
    assert "56.0" in forge.records("inventory/benchmarks/ct129/56.0.md")
    assert forge.records("inventory/deployed/ct129.json") == forge.tip("main"), "what was seen last"


def test_records_that_nobody_takes_fail_the_job(forge):
    (forge.bare / "hooks" / "pre-receive").write_text("#!/bin/sh\nexit 1\n")
    (forge.bare / "hooks" / "pre-receive").chmod(stat.S_IRWXU)
    forge.program("sleep", "#!/bin/sh\n")
    assert forge.deploy("55.0") == 1
    assert "were not pushed to llmops/records; the next run finds the hosts as they are" in forge.said


def test_a_branch_of_records_that_cannot_be_merged_is_found_before_any_host_is_touched(forge):
    forge.deploy("55.0")
    other = forge.folder / "other"
    forge.git("clone", "--quiet", "--branch=llmops/records", str(forge.bare), str(other), at=forge.folder)
    (other / "inventory/hosts.yml").unlink()
    forge.git("commit", "--quiet", "--all", "-m", "gone", at=other)
    forge.git("push", "--quiet", "origin", "HEAD:refs/heads/llmops/records", at=other)
    forge.git("clean", "-qfd")
    forge.git("checkout", "--quiet", "--", ".")
    (forge.clone / "inventory/hosts.yml").write_text("sglang: {}\n")
    forge.commit("other hosts")
    called = len(forge.calls())
    assert forge.deploy("56.0") == 1
    assert "cannot be merged" in forge.said and len(forge.calls()) == called


def test_of_the_branch_of_records_nothing_else_reaches_a_rollout(forge):
    forge.deploy("55.0")
    other = forge.folder / "other"
    forge.git("clone", "--quiet", "--branch=llmops/records", str(forge.bare), str(other), at=forge.folder)
    (other / "inventory/host_vars/ct129/sglang_server.yml").write_text("sglang_server_flags: {evil: true}\n")
    forge.git("commit", "--quiet", "--all", "-m", "a flag", at=other)
    forge.git("push", "--quiet", "origin", "HEAD:refs/heads/llmops/records", at=other)
    (forge.folder / "calls.status").unlink()
    assert forge.deploy("56.0") == 0, forge.said
    assert "host_vars" not in (forge.folder / "calls.status").read_text()


def test_a_check_ends_as_the_playbook_does_and_shows_its_report_last(forge):
    assert forge.ci("check", CHECK="2") == 2
    assert forge.said.endswith("the report\n")
    assert forge.calls() == ["-i localhost, llmops.inference.check -e sglang_check_base=origin/main"]
    assert forge.ci("check", "v1") == 0 and forge.calls()[-1].endswith("=v1")
    assert forge.ci("check", SGLANG_CHECK_BASE="abc") == 0 and forge.calls()[-1].endswith("=abc")


ALL, HOSTS = "inventory/group_vars/all/x.yml", "inventory/hosts.ini"
VAULTED = "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  61\n"


@pytest.mark.parametrize(
    "name, text, line",
    [
        ("inventory/group_vars/all/vault.yml", "vault_sglang_server_api_key: planted\n", 1),
        ("inventory/group_vars/all/vault.yml", f'vault_a: {VAULTED}vault_b: "planted"\n', 4),
        ("inventory/group_vars/x/vault", "vault_sglang_server_api_key: planted\n", 1),
        ("inventory/host_vars/ct129/sglang_server.yml", "sglang_server_api_key: planted\n", 1),
        ("inventory/hosts.yml", "sglang:\n  vars:\n    sglang_model_hub_token: planted\n", 3),
        ("inventory/group_vars/all/vault.yml.old", "sglang_server_admin_api_key: planted\n", 1),
        (ALL, "sglang_server_api_key: planted # was: !vault before\n", 1),
        (ALL, "sglang_server_api_key: planted # was: {{ vault_x }}\n", 1),
        (ALL, "sglang_server_api_key: !vault planted\n", 1),
        (ALL, "sglang_server_api_key: '''planted'\n", 1),
        (ALL, "sglang_server_api_key:\n  planted\n", 1),
        (ALL, "a: 1\nsglang_server_api_key: # below\n  planted\n", 2),
        (ALL, "sglang_server_api_key: >-\n  planted\n", 1),
        (ALL, "sglang_model_hub_token:", 1),
        (ALL, "a: {sglang_server_api_key: planted}\n", 1),
        (ALL, 'a: {vault_a: "", vault_b: "{{ c }}", \'vault_d\': planted}\n', 1),
        (ALL, '{"vault_a":"","sglang_server_api_key":"planted"}\n', 1),
        (ALL, "# Gr\u00fc\u00dfe\n#sglang_server_api_key: planted\n", 2),
        *((ALL, f"---\nansible_{word}: planted\n", 2) for word in ("password", "become_password", "become_pass", "ssh_pass", "ssh_password")),
        (HOSTS, "[sglang]\nct129 ansible_host=192.0.2.1 sglang_server_api_key=planted\n", 2),
        (HOSTS, "[sglang:vars]\nansible_password = planted\n", 2),
    ],
)
def test_secrets_in_plain_text_are_refused(forge, name, text, line):
    (forge.clone / name).parent.mkdir(parents=True, exist_ok=True)
    (forge.clone / name).write_text(text)
    forge.commit("a change", push=False)
    for words in ((), (name,)):
        assert forge.ci("plaintext", *words) == 1
        assert forge.said.startswith(f"{name}:{line}: holds a secret in plain text, or ") and forge.said.count("\n") == 1
        assert "planted" not in forge.said


@pytest.mark.parametrize(
    "name, text",
    [
        ("inventory/group_vars/all/vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n6162\n"),
        ("inventory/group_vars/all/vault.yml", f"vault_a: {VAULTED}vault_b:  {VAULTED}"),
        (ALL, 'sglang_server_api_key: "{{ vault_sglang_server_api_key }}"\n'),
        (ALL, "sglang_server_api_key: '{{ vault_a if vault_b == \"c\" else vault_d }}'  # from the vault\n"),
        (ALL, 'sglang_server_api_key: ""\nsglang_model_hub_token: \'\'  # none\na: {vault_a: "", vault_b: ""}\n'),
        (ALL, "my_vault_a: 1\nsglang_server_api_keys: 2\nansible_ssh_private_key_file: a\nansible_password_of: b\n"),
        (HOSTS, "ct129 ansible_password='{{ vault_a }}' ansible_become_pass={{ vault_b }} sglang_server_api_key=\"\"\n"),
        ("inventory/snapshots/ct129/host.json", '{"ansible_password": "recorded"}\n'),
        ("inventory/benchmarks/ct129/1.json", '{"vault_a": 1}\n'),
        ("inventory/deployed/ct129.json", '{"vault_a": 1}\n'),
        ("docs.md", "vault_a: b\n"),
    ],
)
def test_what_is_no_secret_in_plain_text_passes(forge, name, text):
    assert forge.ci("plaintext") == 0, forge.said
    (forge.clone / name).parent.mkdir(parents=True, exist_ok=True)
    (forge.clone / name).write_text(text)
    forge.commit("a change", push=False)
    for words in ((), (name,)):
        assert (forge.ci("plaintext", *words), forge.said) == (0, "")


@pytest.mark.parametrize("name", ["key.txt", "inventory/snapshots/ct129/key"])
def test_private_keys_are_refused_everywhere(forge, name):
    (forge.clone / name).write_text("\n-----BEGIN OPENSSH " + "PRIVATE KEY-----\nplanted\n")
    forge.commit("a change", push=False)
    assert forge.ci("plaintext") == 1
    assert forge.said.startswith(f"{name}:2: holds a private key") and "planted" not in forge.said


def test_a_file_that_cannot_be_looked_at_does_not_pass(forge):
    forge.program("grep", "#!/bin/sh\nexit 2\n")
    assert forge.ci("plaintext") != 0


# --- the comment -----------------------------------------------------------------------------------------------------------------------------------------

GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in
  *pulls/7*) echo 0123 ;;
  *--paginate*) printf '%b' "${OWN:-}" ;;
esac
"""


def comment(tmp_path, files, **environment):
    """Runs the comment's script over an artefact; returns its status and the calls of the forge's API that write."""
    report, programs = tmp_path / "check", tmp_path / "bin"
    report.mkdir()
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(stat.S_IRWXU)
    for name, text in files.items():
        write_text_or_link(report / name, text)
    (script,) = [step["run"] for step in steps("comment") if "run" in step]
    own = {
        "REPOSITORY": "o/r",
        "CHECKED": "0123",
        "REPORT": str(report),
        "BODY": str(tmp_path / "body.md"),
        "CALLS": str(tmp_path / "calls"),
        "LOG": "https://forge/runs/9",
    }
    values = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **own, **environment}
    done = subprocess.run(["bash", "-c", script], env=values, check=False, capture_output=True, text=True)
    calls = (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
    return done.returncode, [call for call in calls if "--method" in call]


GOOD = {"number": "7\n", "check.md": f"{MARKER}\nfine\n"}


def test_a_first_comment_is_posted_and_a_later_one_replaces_it(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    body = {name: tmp_path / name / "body.md" for name in "ab"}
    assert comment(tmp_path / "a", GOOD) == (0, [f"api --silent --method POST repos/o/r/issues/7/comments -F body=@{body['a']}"])
    assert body["a"].read_text() == GOOD["check.md"]
    assert comment(tmp_path / "b", GOOD, OWN="41\\n42\\n") == (0, [f"api --silent --method PATCH repos/o/r/issues/comments/41 -F body=@{body['b']}"])


@pytest.mark.parametrize(
    "files, status",
    [
        pytest.param({**GOOD, "number": "7; id\n"}, 1, id="number-is-code"),
        pytest.param({**GOOD, "number": ""}, 1, id="no-number"),
        pytest.param({**GOOD, "number": "8\n"}, 0, id="another-pull-request"),
        pytest.param({"check.md": GOOD["check.md"]}, 1, id="number-is-missing"),
        pytest.param({**GOOD, "number": "->/etc/hostname"}, 1, id="number-is-a-link"),
        pytest.param({"number": "8\n"}, 0, id="another-pull-request-without-a-report"),
    ],
)
def test_without_the_pull_request_that_was_checked_nothing_is_written(tmp_path, files, status):
    assert comment(tmp_path, files) == (status, [])


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="no-report"),
        pytest.param({"check.md": "->/proc/self/environ"}, id="link"),
        pytest.param({"check.md": f"hello\n{MARKER}\n"}, id="no-marker"),
    ],
)
def test_a_check_without_a_report_replaces_what_an_older_one_said(tmp_path, files):
    status, calls = comment(tmp_path, {"number": "7\n", **files}, OWN="41\\n")
    assert status == 1
    assert calls == [f"api --silent --method PATCH repos/o/r/issues/comments/41 -F body=@{tmp_path / 'body.md'}"]
    body = (tmp_path / "body.md").read_text()
    assert body.startswith(NOT_JUDGED) and "https://forge/runs/9" in body and len(body.splitlines()) == 4


def test_a_long_report_is_cut_where_the_forge_would_refuse_it(tmp_path):
    status, calls = comment(tmp_path, {**GOOD, "check.md": MARKER + "\n" + "\u00e4" * 70000})
    assert status == 0 and len(calls) == 1
    body = (tmp_path / "body.md").read_bytes().decode()
    assert len(body) < 65536 and body.endswith("The rest is in the artefact of the check.\n")
