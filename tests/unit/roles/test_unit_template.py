# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit as the role sglang_server renders it, by Ansible's own templating of its defaults, vars and tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.module_utils._systemd import parse_unit

ROLE = Path(__file__).resolve().parents[3] / "roles" / "sglang_server"
# A few flags of the shipped table: reading the whole one takes most of a rendering.
FLAGS = Path(__file__).resolve().parents[1] / "fixtures" / "flags-excerpt.json"
PREFLIGHT = {"format": 1, "verdict": "passed", "findings": []}
SECRETS = {
    "sglang_server_api_key": "s3cret-key",
    "sglang_server_admin_api_key": "s3cret-admin",
    "sglang_server_secret_flags": {"ssl_keyfile_password": "s3cret-password"},
    "sglang_server_secret_env": {"OTHER": "s3cret-other"},
    "sglang_server_env": {"HF_TOKEN": "s3cret-token", "NCCL_DEBUG": "INFO"},
}


def load(path):
    return DataLoader().load_from_file(str(ROLE / path), trusted_as_template=True)


def action_arguments(path, action):
    """Arguments of the only task of a file that runs this action."""
    (task,) = [task for task in load(path) if action in task]
    return task[action]


def deployment(flavour="cuda", **variables):
    """What the role hands to the module sglang_release for a server of this flavour."""
    engine = {"name": "e", "path": "/opt/e", "python": "/opt/e/bin/python", "version": "0.5.23", "flavour": flavour, "flags_path": str(FLAGS)}
    model = {"path": "/opt/m", "name": "qwen", "source": "local", "revision": ""}
    known = {**load("defaults/main.yml"), **load("vars/main.yml"), "sglang_server_engine": engine, "sglang_server_model": model}
    known.update(inventory_hostname="ct129", inventory_dir="/inv", ansible_managed="Ansible managed", ansible_search_path=[str(ROLE)], __sglang_model=model)
    known.update(__sglang_server_preflight={"preflight": PREFLIGHT, "cached": True, "changed": False})
    known.update(variables)
    templar = Templar(loader=DataLoader(), variables=known)
    for name, expression in action_arguments("tasks/arguments.yml", "ansible.builtin.set_fact").items():
        known[name] = templar.template(expression)
        templar.available_variables = known
    arguments = dict(action_arguments("tasks/bring.yml", "llmops.inference.sglang_release"))
    arguments.pop("ca_path")
    return {name: templar.template(value) for name, value in arguments.items()}


def unit(flavour="cuda", **variables):
    return parse_unit(deployment(flavour, **variables)["unit"])


def values(section, key):
    return [value for name, value in section if name == key]


def environment(service):
    return dict(value.strip('"').split("=", 1) for value in values(service, "Environment"))


FLAVOURS = pytest.mark.parametrize("flavour", ["cuda", "cpu"])


@FLAVOURS
@pytest.mark.parametrize("variables", [{}, SECRETS], ids=["plain", "secrets"])
def test_what_every_unit_says(flavour, variables):
    parsed = unit(flavour, **variables)
    service = parsed["Service"]
    scalars = {
        "Type": "exec",
        "User": "sglang",
        "Restart": "always",
        "RestartSec": "5",
        "KillMode": "mixed",
        "SuccessExitStatus": "SIGKILL",
        "TimeoutStopSec": "60",
        "LimitMEMLOCK": "infinity",
        "LogRateLimitIntervalSec": "0",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "PrivateTmp": "yes",
        "UMask": "0077",
    }
    assert {key: values(service, key) for key in scalars} == {key: [value] for key, value in scalars.items()}
    assert values(service, "EnvironmentFile")[0] == "@RELEASE@/environment"
    assert parsed["Install"] == [("WantedBy", "multi-user.target")]


@pytest.mark.parametrize(
    "variables",
    [{}, {"sglang_server_start_timeout_seconds": 7, "sglang_server_restart_delay_seconds": 2, "sglang_server_start_limit_burst": 4}],
    ids=["default", "own"],
)
def test_the_start_limit_is_one_that_a_slow_start_trips(variables):
    parsed = unit(**variables)
    limits = dict(pair for pair in parsed["Unit"] if pair[0].startswith("StartLimit"))
    assert set(limits) == {"StartLimitIntervalSec", "StartLimitBurst"}
    assert not [key for key, value in parsed["Service"] if key.startswith("StartLimit")], "systemd ignores them there"
    timeout = variables.get("sglang_server_start_timeout_seconds", 1800)
    slowest = timeout + int(values(parsed["Service"], "RestartSec")[0])
    assert int(limits["StartLimitIntervalSec"]) >= int(limits["StartLimitBurst"]) * slowest > 0


@FLAVOURS
def test_home_and_caches_are_writable_directories_of_the_service(flavour):
    """U05"""
    service = unit(flavour)["Service"]
    state, cache = (f"/var/{name}/sglang-main" for name in ("lib", "cache"))
    assert (values(service, "StateDirectory"), values(service, "CacheDirectory")) == (["sglang-main"], ["sglang-main"])
    variables = environment(service)
    assert variables["HOME"] == state == values(service, "WorkingDirectory")[0]
    for name in ("HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "XDG_CACHE_HOME"):
        assert variables[name].startswith(cache), name
    assert variables["HF_HUB_OFFLINE"] == variables["TRANSFORMERS_OFFLINE"] == "1"
    assert variables["PATH"].startswith("/opt/e/bin:")


@pytest.mark.parametrize("home", [None, "", "/opt/e/cuda"])
def test_the_engines_own_compilers_come_first(home):
    """L07"""
    engine = {"name": "e", "path": "/opt/e", "python": "/opt/e/bin/python", "version": "0.5.23", "flavour": "cuda", "flags_path": str(FLAGS)}
    engine.update({} if home is None else {"cuda_home": home})
    variables = environment(unit(sglang_server_engine=engine)["Service"])
    assert variables.get("CUDA_HOME") == (home or None)
    own = "/opt/e/cuda/bin:" if home else ""
    assert variables["PATH"] == f"/opt/e/bin:{own}/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@FLAVOURS
@pytest.mark.parametrize("credentials", ["systemd", "file"])
def test_secrets_are_handed_over_beside_the_release(flavour, credentials):
    """U09"""
    handed = deployment(flavour, sglang_server_credentials=credentials, **SECRETS)
    secrets = {"secret_flags", "secret_environment", "api_key"}
    assert "s3cret" not in repr({name: value for name, value in handed.items() if name not in secrets})
    assert handed["secret_flags"] == {"api_key": "s3cret-key", "admin_api_key": "s3cret-admin", "ssl_keyfile_password": "s3cret-password"}
    assert handed["secret_environment"] == {"HF_TOKEN": "s3cret-token", "OTHER": "s3cret-other"}
    assert handed["environment"] == {"NCCL_DEBUG": "INFO"}
    service = parse_unit(handed["unit"])["Service"]
    store = "/var/lib/llmops-inference/main/secrets"
    assert values(service, "EnvironmentFile") == ["@RELEASE@/environment", f"{store}/environment"]
    by_systemd = credentials == "systemd"
    assert values(service, "LoadCredential") == ([f"secrets.yaml:{store}/secrets.yaml"] if by_systemd else [])
    path = "${CREDENTIALS_DIRECTORY}/secrets.yaml" if by_systemd else "/etc/llmops-inference/main.yaml"
    assert values(service, "ExecStart")[0].endswith(f" --config {path}")


def test_a_server_without_secrets_reads_none():
    service = unit()["Service"]
    assert values(service, "EnvironmentFile") == ["@RELEASE@/environment"]
    assert values(service, "LoadCredential") == []
    assert "--config" not in values(service, "ExecStart")[0]


def test_devices_of_a_gpu_server():
    """U06"""
    service = unit("cuda")["Service"]
    assert values(service, "PrivateDevices") == []
    assert values(service, "DevicePolicy") == ["closed"]
    allowed = [value.split() for value in values(service, "DeviceAllow")]
    assert {"char-nvidia", "char-nvidia-uvm", "char-infiniband_verbs"} <= {device for device, rights in allowed}
    assert {rights for device, rights in allowed} == {"rw"}


def test_devices_of_a_cpu_server():
    service = unit("cpu")["Service"]
    assert values(service, "PrivateDevices") == ["yes"]
    assert values(service, "DevicePolicy") == values(service, "DeviceAllow") == []


@FLAVOURS
def test_nothing_that_is_known_to_break_a_server(flavour):
    """U06"""
    service = unit(flavour)["Service"]
    assert values(service, "MemoryDenyWriteExecute") == values(service, "SystemCallFilter") == values(service, "IPAddressDeny") == []
    assert {"AF_UNIX", "AF_NETLINK"} <= set(values(service, "RestrictAddressFamilies")[0].split())


def test_the_command_line():
    """U01, U02"""
    flags = {"tp_size": 2, "enable_metrics": True, "json_model_override_args": {"a": "100% $x"}}
    handed = deployment(sglang_server_served_model_name="m-%i", sglang_server_flags=flags, sglang_server_extra_args=["--log-level", "info"])
    assert handed["argv"][:8] == ["--model-path", "/opt/m", "--served-model-name", "m-%i", "--host", "127.0.0.1", "--port", "30000"]
    assert handed["argv"][8:] == ["--tp-size", "2", "--enable-metrics", "--json-model-override-args", '{"a": "100% $x"}', "--log-level", "info"]
    (line,) = values(parse_unit(handed["unit"])["Service"], "ExecStart")
    assert line.startswith('/opt/e/bin/python -m sglang.launch_server --model-path /opt/m --served-model-name "m-%%i" --host 127.0.0.1 --port 30000 ')
    assert line.endswith(' --enable-metrics --json-model-override-args "{\\"a\\": \\"100%% $$x\\"}" --log-level info')


@pytest.mark.parametrize("flags, tls", [({"ssl_certfile": "/c.pem"}, True), ({}, False)])
def test_a_server_with_a_certificate_is_probed_by_https(flags, tls):
    assert deployment(sglang_server_flags=flags)["tls"] is tls


def test_the_preflight_is_handed_over():
    assert deployment()["preflight"] == PREFLIGHT


def test_options_of_the_operator_stand_last():
    service = unit(sglang_server_unit_options={"Nice": 5, "ReadWritePaths": ["/a", "/b"]})["Service"]
    assert service[-3:] == [("Nice", "5"), ("ReadWritePaths", "/a"), ("ReadWritePaths", "/b")]


def test_two_instances_share_no_directory():
    """One inventory host is one server; two can be one machine."""
    one, two = (unit(sglang_server_instance=name, **SECRETS)["Service"] for name in ("one", "two"))
    for key in ("StateDirectory", "CacheDirectory", "WorkingDirectory", "LoadCredential"):
        assert len(values(one, key)) == len(values(two, key)) == 1 and values(one, key) != values(two, key), key
    assert environment(one)["HOME"] != environment(two)["HOME"]


@pytest.mark.parametrize("bind", ["127.0.0.1", "10.0.0.5"])
def test_a_proxy_does_not_see_the_servers_own_requests(bind):
    """N03"""
    handed = deployment(sglang_server_host=bind, sglang_server_env={"http_proxy": "http://192.0.2.10:3128"})
    assert {"localhost", "127.0.0.1", "0.0.0.0", bind} <= set(handed["environment"]["no_proxy"].split(","))
