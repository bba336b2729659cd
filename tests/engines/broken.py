# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Breaks a real server on a real systemd host in many ways, and keeps what its journal then says.

A host with a deployed server ``main`` is needed, for example the one that ``tools/molecule.sh server converge`` leaves (its server is stopped meanwhile):

    PYTHONPATH=collections python tests/engines/broken.py llmops-server              all breakages, about an hour on two cores
    PYTHONPATH=collections python tests/engines/broken.py llmops-server disk_full    some of them

Each breakage is the deployed unit under another name and port with one thing changed. It is started, and watched until it ends or the limit passes. Its
journal goes to ``tests/unit/fixtures/broken/NAME.log``, the kernel's lines of that time to ``NAME.kernel.log``, and how it ended to ``ends.json``. The table of
``tests/unit/plugins/module_utils/test__diagnosis_broken.py`` says what the diagnosis has to make of each.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._journal import journal_command, kernel_command, parse_entries
from ansible_collections.llmops.inference.plugins.module_utils._systemd import environment_assignment, exec_line, parse_unit

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "unit" / "fixtures" / "broken"
BASE, UNIT, PORT = "sglang-main.service", "sglang-broken.service", 31000
MODEL, WORK = "/srv/models/tiny-qwen3", "/var/lib/broken"
SITE = "{engine}/lib/python3.11/site-packages"
LIMIT, POLL, LONGEST_LINE = 150, 0.5, 3000
READY = "The server is fired up"
IMPORTED = re.compile(r"server_args=")
LOADING = re.compile(r"Load weight begin")
SCHEDULER = "pgrep -u sglang -f '^sglang::scheduler' | head -n 1"


@dataclass(frozen=True)
class Breakage:
    """What is changed.

    Attributes:
        flags: words of the command line appended; ``-NAME`` alone takes the flag and its value away.
        without: flags taken away, with their value.
        service: directives of [Service] replaced; None takes one away, a list sets several.
        environment: variables added.
        before: shell commands run on the host before the start.
        when: (pattern, command): run once when a line of the journal matches.
        after: shell commands run afterwards.
        model: shell commands that break a copy of the model, which is then served.
        limit: seconds after which it has stalled.
    """

    flags: str = ""
    without: tuple[str, ...] = ()
    service: dict[str, object] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    before: str = ""
    when: tuple[re.Pattern[str], str] | None = None
    after: str = ""
    model: str = ""
    limit: int = LIMIT


HOLD_PORT = f"systemd-run --quiet --unit=holder python3 -m http.server {PORT} --bind 127.0.0.1"
OWN_CODE = (
    "printf 'from transformers import Qwen3Config\\nclass C(Qwen3Config):\\n    model_type = \"x9\"\\n' > configuration_x.py; "
    'sed -i \'s/"model_type": "qwen3"/"model_type": "x9", "auto_map": {"AutoConfig": "configuration_x.C"}/\' config.json'
)
LIBRARY = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
CERTIFICATE = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout {WORK}/key -out {WORK}/crt 2>/dev/null; chmod 0644 {WORK}/key"
BREAKAGES = {
    "nothing": Breakage(when=(re.compile(READY), f"systemctl stop {UNIT}")),
    # The model.
    "model_missing": Breakage(flags="--model-path /srv/models/none"),
    "model_empty": Breakage(model="rm *"),
    "model_unreadable": Breakage(model="chmod 0700 .; chown root: ."),
    "config_truncated": Breakage(model="truncate -s 200 config.json"),
    "config_not_json": Breakage(model="echo '<html>not found</html>' > config.json"),
    "config_without_architecture": Breakage(model='sed -i \'s/"architectures"/"x"/\' config.json'),
    "architecture_unknown": Breakage(model="sed -i 's/Qwen3ForCausalLM/Foo9ForCausalLM/' config.json"),
    "model_type_unknown": Breakage(model='sed -i \'s/"qwen3"/"foo9"/; s/Qwen3ForCausalLM/Foo9ForCausalLM/\' config.json'),
    "weights_truncated": Breakage(model="truncate -s 100000 model.safetensors"),
    "weights_pointer": Breakage(model="printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:00\\nsize 9\\n' > model.safetensors"),
    "weights_missing": Breakage(model="rm model.safetensors"),
    "weights_of_another_shape": Breakage(model='sed -i \'s/"hidden_size": 64/"hidden_size": 96/\' config.json'),
    "tokenizer_missing": Breakage(model="rm tokenizer*"),
    "tokenizer_truncated": Breakage(model="truncate -s 1000 tokenizer.json"),
    "remote_code": Breakage(model=OWN_CODE),
    "template_missing": Breakage(flags="--chat-template /srv/none.jinja"),
    # Arguments.
    "argument_unknown": Breakage(flags="--enable-nothing 3"),
    "argument_choice": Breakage(flags="--kv-cache-dtype int7"),
    "argument_combination": Breakage(flags="--enable-hierarchical-cache --disable-radix-cache"),
    "argument_json": Breakage(flags="--json-model-override-args {x"),
    "context_too_long": Breakage(without=("--context-length",), flags="--context-length 99999"),
    "quantization": Breakage(flags="--quantization awq"),
    "tp_more_than_numa": Breakage(flags="--tp-size 3"),
    "heads_tp": Breakage(flags="--tp-size 3", environment={"SGLANG_CPU_OMP_THREADS_BIND": "0|1|0"}),
    "kv_pool_too_small": Breakage(without=("--max-total-tokens",), flags="--mem-fraction-static 0.001"),
    "max_total_tokens": Breakage(without=("--max-total-tokens",), flags="--max-total-tokens 1"),
    "lora_missing": Breakage(flags="--enable-lora --lora-paths a=/srv/none"),
    "draft_missing": Breakage(
        flags="--speculative-algorithm EAGLE --speculative-draft-model-path /srv/none --speculative-num-steps 1 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 2"
    ),
    "peer_missing": Breakage(
        flags="--tp-size 2 --nnodes 2 --node-rank 0 --dist-init-addr 127.0.0.1:31500 --dist-timeout 20", environment={"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}
    ),
    # The network.
    "port_taken": Breakage(before=HOLD_PORT, after="systemctl stop holder"),
    "port_privileged": Breakage(flags="--port 80"),
    "address_not_local": Breakage(flags="--host 192.0.2.1"),
    "tls_key_unreadable": Breakage(before=f"{CERTIFICATE}; chmod 0600 {WORK}/key", flags=f"--ssl-keyfile {WORK}/key --ssl-certfile {WORK}/crt"),
    "tls_no_certificate": Breakage(before=f"{CERTIFICATE}; echo x > {WORK}/crt", flags=f"--ssl-keyfile {WORK}/key --ssl-certfile {WORK}/crt"),
    "proxy": Breakage(environment={"http_proxy": "http://192.0.2.10:3128", "HTTP_PROXY": "http://192.0.2.10:3128"}, limit=240),
    # Disk, memory, limits.
    "disk_full": Breakage(
        service={"TemporaryFileSystem": "/var/cache/full:size=16k,mode=0777"}, environment={"TMPDIR": "/var/cache/full"}, flags="--enable-metrics"
    ),
    "shm_full": Breakage(service={"TemporaryFileSystem": "/dev/shm:size=4k,mode=1777", "PrivateDevices": "no"}),
    "temporary_read_only": Breakage(service={"PrivateTmp": "no", "ReadOnlyPaths": "/tmp /var/tmp /dev/shm"}),
    "cache_not_writable": Breakage(
        model=OWN_CODE, before=f"mkdir -p -m 0700 {WORK}/cache", environment={"HF_HOME": f"{WORK}/cache"}, flags="--trust-remote-code"
    ),
    "cache_full": Breakage(
        model=OWN_CODE,
        service={"TemporaryFileSystem": "/var/cache/full:size=4k,nr_inodes=2,mode=0777"},
        environment={"HF_HOME": "/var/cache/full"},
        flags="--trust-remote-code",
    ),
    "cache_read_only": Breakage(model=OWN_CODE, environment={"HF_HOME": "/srv/cache"}, flags="--trust-remote-code"),
    "temporary_none": Breakage(service={"PrivateTmp": "no", "ReadOnlyPaths": "/tmp /var/tmp", "WorkingDirectory": "/"}, flags="--enable-metrics"),
    "memory_limit": Breakage(service={"MemoryMax": "400M"}),
    "address_space": Breakage(service={"LimitAS": "3G"}),
    "file_size": Breakage(service={"LimitFSIZE": "1K"}, flags="--enable-metrics"),
    "open_files": Breakage(service={"LimitNOFILE": "20"}),
    "threads": Breakage(service={"TasksMax": "40"}),
    "processes": Breakage(service={"LimitNPROC": "30"}),
    # The sandbox and the unit.
    "unix_sockets_denied": Breakage(service={"RestrictAddressFamilies": "AF_INET AF_INET6"}),
    "netlink_denied": Breakage(service={"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6"}),
    "system_call_killed": Breakage(service={"SystemCallFilter": "~sched_setaffinity set_mempolicy mbind"}),
    "system_call_refused": Breakage(service={"SystemCallFilter": "~@ipc", "SystemCallErrorNumber": "EPERM"}),
    "memory_not_executable": Breakage(service={"MemoryDenyWriteExecute": "yes"}),
    "engine_not_executable": Breakage(service={"NoExecPaths": "/opt/sglang"}),
    "program_missing": Breakage(service={"InaccessiblePaths": "{engine}"}),
    "user_missing": Breakage(service={"User": "nobody-such", "Group": None}),
    "path_missing": Breakage(service={"ReadWritePaths": "/nonexistent"}),
    "directory_missing": Breakage(service={"WorkingDirectory": "/nonexistent"}),
    "environment_missing": Breakage(service={"EnvironmentFile": "/nonexistent"}),
    "credential_missing": Breakage(service={"LoadCredential": "secrets.yaml:/nonexistent"}),
    "library_missing": Breakage(before=f"mv {LIBRARY} {WORK}", after=f"mv {WORK}/$(basename {LIBRARY}) {LIBRARY}"),
    "library_forbidden": Breakage(service={"InaccessiblePaths": LIBRARY}),
    "module_hidden": Breakage(service={"InaccessiblePaths": f"{SITE}/msgspec"}),
    # What ends it.
    "scheduler_killed": Breakage(when=(LOADING, f"kill -KILL $({SCHEDULER})")),
    "scheduler_crashed": Breakage(when=(LOADING, f"kill -SEGV $({SCHEDULER})")),
    "main_killed": Breakage(when=(IMPORTED, f"systemctl kill --kill-who=main --signal=KILL {UNIT}")),
    "main_killed_by_hand": Breakage(when=(IMPORTED, f"kill -KILL $(systemctl show --property=MainPID --value {UNIT})")),
    "stopped": Breakage(when=(IMPORTED, f"systemctl stop {UNIT}")),
    "scheduler_frozen": Breakage(when=(LOADING, f"kill -STOP $({SCHEDULER})"), limit=100),
    "watchdog_of_systemd": Breakage(service={"WatchdogSec": "15"}),
    "start_timeout": Breakage(service={"Type": "notify", "TimeoutStartSec": "15"}),
    "runtime_limit": Breakage(service={"RuntimeMaxSec": "15"}),
    "start_limit": Breakage(flags="--enable-nothing", service={"Restart": "always", "RestartSec": "1"}, limit=240),
}


class Host:
    """A host of ``tools/hosts.sh``.

    Args:
        name: of its container.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def run(self, *command: str, text: str | None = None, check: bool = True) -> str:
        """Runs a command on it and returns what it printed."""
        words = [str(ROOT / "tools" / "podman"), "exec", "--interactive", self._name, *command]
        return subprocess.run(words, input=text, text=True, stdout=subprocess.PIPE, check=check).stdout

    def shell(self, script: str) -> None:
        """Runs a shell script on it, if there is one."""
        if script:
            self.run("sh", "-c", script)

    def show(self) -> dict[str, str]:
        """Returns the state of the broken unit."""
        names = "ActiveState,SubState,Result,ExecMainStatus,InvocationID,NRestarts,ControlGroup"
        return dict(line.split("=", 1) for line in self.run("systemctl", "show", UNIT, f"--property={names}").splitlines())

    def journal(self, invocation: str) -> list[str]:
        """Returns the texts of one run."""
        return [line.text for line in parse_entries(self.run(*journal_command(UNIT, invocation, whole=True)))[0]]

    def kernel(self, begun: float, known: list[str]) -> list[str]:
        """Returns what the kernel logged since; a container's kernel is this machine's, whose log its journal does not hold."""
        own = [line.text for line in parse_entries(self.run(*kernel_command(begun)))[0]]
        told = dmesg()
        new = told[told.index(known[-1]) + 1 :] if known and known[-1] in told else told
        return own or [line.partition("] ")[2] for line in new if re.search(r"oom-kill:|Killed process|segfault at|type=1326|trap ", line)]


def dmesg() -> list[str]:
    """Returns the log of this machine's kernel."""
    return subprocess.run(["dmesg"], text=True, stdout=subprocess.PIPE, check=False).stdout.splitlines()


def unit_text(base: str, breakage: Breakage) -> str:
    """Returns the unit that is broken: the deployed one under another name and port, without restarts, with the change."""
    unit = parse_unit(base.replace("sglang-main", "sglang-broken"))
    service = [(key, value) for key, value in unit["Service"] if key not in ("EnvironmentFile", "Restart", "ExecStart")]
    words = shlex.split(dict(unit["Service"])["ExecStart"])
    engine = str(Path(words[0]).parents[1])
    words[words.index("--port") + 1] = str(PORT)
    for flag in breakage.without:
        del words[words.index(flag) : words.index(flag) + 2]
    if breakage.model:
        words[words.index(MODEL)] = f"{WORK}/model"
    service += [("Environment", environment_assignment(name, value)) for name, value in breakage.environment.items()]
    changed = {"Restart": "no", **breakage.service}
    service = [(key, value) for key, value in service if key not in changed]
    for key, value in changed.items():
        values = value if isinstance(value, list) else [] if value is None else [value]
        service += [(key, str(one).replace("{engine}", engine)) for one in values]
    service.append(("ExecStart", exec_line([*words, *shlex.split(breakage.flags)])))
    lines = ["[Unit]", "StartLimitIntervalSec=600", "StartLimitBurst=2", "[Service]", *(f"{key}={value}" for key, value in service)]
    return "\n".join(lines) + "\n"


def break_it(host: Host, base: str, breakage: Breakage) -> tuple[dict[str, object], list[str], list[str]]:
    """Runs one breakage; returns how it ended, its journal, and the kernel's lines."""
    host.shell(f"systemctl stop {UNIT} 2>/dev/null; systemctl reset-failed {UNIT} 2>/dev/null; rm -rf {WORK}; mkdir -p {WORK}")
    if breakage.model:
        host.shell(f"cp -r {MODEL} {WORK}/model && cd {WORK}/model && {breakage.model}")
    host.shell(breakage.before)
    host.run("tee", f"/run/systemd/system/{UNIT}", text=unit_text(base, breakage))
    host.run("systemctl", "daemon-reload")
    begun, known, pending = time.time(), dmesg(), breakage.when
    host.run("systemctl", "start", "--no-block", UNIT)
    runs: list[str] = []
    while True:
        time.sleep(POLL)
        state = host.show()
        runs += [state["InvocationID"]] if state["InvocationID"] and state["InvocationID"] not in runs else []
        lines = host.journal(runs[-1]) if runs else []
        if pending and any(map(pending[0].search, lines)):
            host.shell(pending[1])
            pending = None
        ended = state["ActiveState"] in ("failed", "inactive") and state["SubState"] != "auto-restart" and bool(runs)
        ready = any(READY in line for line in lines) and not breakage.when
        if ended or ready or time.time() - begun > breakage.limit:
            break
    took = round(time.time() - begun)
    time.sleep(1)
    lines, kernel = [line for run in runs for line in host.journal(run)], host.kernel(begun, known)
    state = host.show()
    host.shell(f"systemctl stop {UNIT} 2>/dev/null; {breakage.after}")
    end = {
        "ended": "by itself" if ended else "ready" if ready else "stalled",
        "result": state["Result"],
        "status": int(state["ExecMainStatus"]),
        "seconds": took,
    }
    return end, lines, kernel


def trimmed(lines: list[str]) -> str:
    """Returns the text of a fixture: long lines cut, the parser's list of flags and stacks of compiled code left out, identifiers of the container replaced."""
    lines = [line for line in lines if not re.match(r" {8,}\[?(?:--|\{|[A-Z])|frame #\d+: ", line)]
    return "".join(f"{re.sub(r'libpod-[0-9a-f]{64}', 'libpod-0', line)[:LONGEST_LINE]}\n" for line in lines)


def keep(name: str, end: dict[str, object], lines: list[str], kernel: list[str]) -> None:
    """Writes the fixtures of one breakage."""
    FIXTURES.mkdir(exist_ok=True)
    (FIXTURES / f"{name}.log").write_text(trimmed(lines))
    (FIXTURES / f"{name}.kernel.log").unlink(missing_ok=True)
    if kernel:
        (FIXTURES / f"{name}.kernel.log").write_text(trimmed(kernel))
    path = FIXTURES / "ends.json"
    ends = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**ends, name: end}, indent=1, sort_keys=True) + "\n")


def main() -> int:
    """Breaks what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *BREAKAGES])
    args = parser.parse_args()
    host = Host(args.host)
    base = host.run("cat", f"/etc/systemd/system/{BASE}")
    host.run("systemctl", "stop", BASE)
    for name in args.names or BREAKAGES:
        end, lines, kernel = break_it(host, base, BREAKAGES[name])
        keep(name, end, lines, kernel)
        print(f"{name}: {end['ended']} after {end['seconds']} s, {end['result']}, {len(lines)} lines", flush=True)
    host.shell(f"rm -f /run/systemd/system/{UNIT}; rm -rf {WORK}; systemctl daemon-reload; systemctl start {BASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
