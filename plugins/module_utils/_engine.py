# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Immutable engine environments: one virtual environment per pinned engine, never used before its completion marker is there."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _toolkit as toolkit
from ansible_collections.llmops.inference.plugins.module_utils._compat import Build, Machine, judge, numbers, supported_cuda
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding, errors
from ansible_collections.llmops.inference.plugins.module_utils._host import Run
from ansible_collections.llmops.inference.plugins.module_utils._release import write_atomically

MARKER = "engine.json"
FLAGS = "flags.json"
FORMAT = 1
_HEADER = re.compile(r"^# llmops: (?P<key>[a-z_]+)=(?P<value>.+)$")


class EngineError(RuntimeError):
    """An engine cannot be installed here; the message is for the operator."""


@dataclass(frozen=True)
class Lock:
    """A lock file: pinned requirements with hashes, and what the engine needs of a host.

    Attributes:
        text: the whole file.
        needs: the header's ``key=value`` pairs: python, architecture, glibc, disk_gb, cuda.
        deviations: what the lock changes of the release's own pins, one sentence each.
    """

    text: str
    needs: t.Mapping[str, str]
    deviations: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits of the SHA-256 of the requirements; comments do not count."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]

    @property
    def packages(self) -> dict[str, str]:
        """What it pins: name -> version."""
        return toolkit.read_packages(self.text)


def parse_lock(text: str) -> Lock:
    """Reads a lock file.

    Raises:
        EngineError: it pins no SGLang.
    """
    found = (_HEADER.match(line) for line in text.splitlines())
    needs = {match["key"]: match["value"].strip() for match in found if match}
    lock = Lock(text, needs, tuple(re.findall(r"^# deviation: (.+)$", text, re.MULTILINE)))
    if not re.search(r"^sglang==\d", text, re.MULTILINE):
        raise EngineError("the lock pins no sglang: make one with `make lock ENGINE=VERSION FLAVOUR=cuda`")
    return lock


def engine_name(version: str, flavour: str, lock: Lock, python: str, architecture: str) -> str:
    """Returns the directory name of an engine: version, flavour, lock hash, Python minor, architecture.

    Raises:
        EngineError: the lock pins another version.
    """
    pinned = lock.packages["sglang"]
    if pinned != version:
        raise EngineError(f"the lock pins sglang {pinned}, sglang_engine_version is {version}")
    return f"{version}-{flavour}-{lock.hash}-py{python.replace('.', '')}-{architecture}"


@dataclass(frozen=True)
class HostFacts:
    """What of a host decides whether an engine can run on it.

    Attributes:
        python: minor version of the interpreter, ``3.11``.
        architecture: machine name, ``x86_64``.
        glibc: version of the C library, ``2.36``; empty where there is none.
        free_gb: free space where engines go, in 10^9 bytes.
        machine: the NVIDIA driver and GPUs, as far as there are any.
    """

    python: str
    architecture: str
    glibc: str
    free_gb: float
    machine: Machine = Machine()


def refuse_unfit_lock(lock: Lock, flavour: str) -> None:
    """Checks that what a lock pins can work together, before anything is downloaded.

    Raises:
        EngineError: it mixes CUDA majors (I01), or a compiler with headers of another version.
    """
    compilers = toolkit.judge_compilers(lock.packages) if flavour == "cuda" else []
    _refuse([*toolkit.judge_packages(lock.packages), *compilers])


def refuse_unfit_host(lock: Lock, host: HostFacts) -> None:
    """Checks a host before anything is downloaded.

    Raises:
        EngineError: one sentence with what the engine needs and what the host has.
    """
    needs = lock.needs
    if needs.get("architecture", host.architecture) != host.architecture:
        raise EngineError(f"this engine's wheels are for {needs['architecture']}, the host is {host.architecture}")
    if needs.get("python", host.python) != host.python:
        raise EngineError(f"this lock is for Python {needs['python']}, sglang_engine_python is Python {host.python}: use that interpreter or another lock")
    if "glibc" in needs and numbers(host.glibc) < numbers(needs["glibc"]):
        raise EngineError(f"this engine's wheels need glibc {needs['glibc']} or newer, the host has {host.glibc or 'none'}")
    if float(needs.get("disk_gb", 0)) > host.free_gb:
        raise EngineError(f"this engine needs {needs['disk_gb']} GB of disk, {host.free_gb:.1f} GB are free below sglang_engine_root")
    _refuse(judge(host.machine, Build(needs.get("cuda", ""))))


def unfit(lock: Lock, facts: t.Mapping[str, t.Any], driver: str = "") -> list[str]:
    """Returns why a host cannot run an engine, one sentence each, from what is known before anything is installed.

    Args:
        lock: the engine's lock.
        facts: what gpu_facts found; may be empty.
        driver: branch or version of a driver that is going to be installed; it counts instead of the present one.
    """
    machine = machine_of(facts) if facts else Machine()
    if driver:
        # The newest of a branch.
        machine = Machine(driver if "." in driver else f"{driver}.999", supported_cuda(driver), machine.gpus)
    return _reasons(judge(machine, Build(lock.needs.get("cuda", ""))))


def refuse_unfit_engine(engine: t.Mapping[str, t.Any], machine: Machine) -> None:
    """Checks an installed engine against the host's GPUs.

    Args:
        engine: what its proof said; ``cuda`` and ``architectures`` decide.
        machine: the host's driver and GPUs.

    Raises:
        EngineError: torch has no kernel for a GPU, or the driver is too old.
    """
    _refuse(judge(machine, Build(engine.get("cuda") or "", engine.get("architectures") or ())))


def _reasons(findings: t.Iterable[Finding]) -> list[str]:
    return [f"{finding.text}: {finding.hint}" if finding.hint else finding.text for finding in errors(findings)]


def _refuse(findings: t.Iterable[Finding]) -> None:
    reasons = _reasons(findings)
    if reasons:
        raise EngineError("; ".join(reasons))


def machine_of(facts: t.Mapping[str, t.Any]) -> Machine:
    """Returns what of gpu_facts' answer decides on compatibility."""
    driver = facts["driver"]
    gpus = [(gpu["name"], gpu["compute_capability"]) for gpu in facts["gpus"]]
    return Machine(driver["version"], driver["cuda"], gpus, driver["compatibility"])


def read_host_facts(root: Path, python: str, machine: Machine) -> HostFacts:
    """Reads the facts of this host.

    Args:
        root: where engines go; its nearest existing parent is measured.
        python: minor version of the interpreter that will be used.
        machine: its driver and GPUs.
    """
    existing = next(path for path in (root, *root.parents) if path.exists())
    library, glibc = platform.libc_ver()
    free = shutil.disk_usage(existing).free / 1e9
    return HostFacts(python, platform.machine(), glibc if library == "glibc" else "", free, machine)


@dataclass
class Source:
    """Where packages come from.

    Attributes:
        index_url: replaces the default index when set.
        extra_index_urls: further indexes.
        find_links: directories or pages with wheels.
        offline: no index at all; only ``find_links`` and the cache.
        cache: uv's cache directory.
    """

    index_url: str = ""
    extra_index_urls: t.Sequence[str] = ()
    find_links: t.Sequence[str] = ()
    offline: bool = False
    cache: str = ""

    def arguments(self) -> list[str]:
        """Returns uv's options."""
        words = ["--no-config"]
        words += ["--offline", "--no-index"] if self.offline else []
        words += ["--default-index", self.index_url] if self.index_url and not self.offline else []
        words += [word for url in self.extra_index_urls if not self.offline for word in ("--index", url)]
        words += [word for place in self.find_links for word in ("--find-links", place)]
        words += ["--cache-dir", self.cache] if self.cache else []
        return words


@dataclass
class Plan:
    """One engine to install.

    Attributes:
        name: directory name below ``root``.
        root: where engines live.
        uv: path of uv.
        python: path of the base interpreter.
        lock_path: the lock on this host.
        lock: its content.
        source: where packages come from.
        support: directory of the CPU support package, or empty.
        prove: the script that proves an engine and exports its parser.
        flavour: ``cuda`` or ``cpu``.
        machine: the driver and GPUs that the engine is for.
    """

    name: str
    root: Path
    uv: str
    python: str
    lock_path: str
    lock: Lock
    source: Source
    prove: str
    support: str = ""
    flavour: str = "cuda"
    machine: Machine = Machine()

    @property
    def path(self) -> Path:
        """Directory of the engine."""
        return self.root / self.name

    @property
    def compiles(self) -> bool:
        """True where the engine brings the compilers for its kernels."""
        return self.flavour == "cuda" and toolkit.COMPILER in self.lock.packages


class Installer:
    """Installs one engine as a transaction: built at its final path, the marker written last.

    Args:
        plan: what to install.
        run: runs a command.
        report: progress callback (step, seconds).
    """

    def __init__(self, plan: Plan, run: Run, report: t.Callable[[str, float], None] = lambda step, seconds: None) -> None:
        self._plan = plan
        self._run = run
        self._report = report
        self._seconds: dict[str, float] = {}

    @property
    def path(self) -> Path:
        """Directory of the engine."""
        return self._plan.path

    @property
    def name(self) -> str:
        """Directory name of the engine."""
        return self._plan.name

    @property
    def complete(self) -> bool:
        """True when the engine is there and was proven."""
        return (self._plan.path / MARKER).exists()

    def install(self) -> dict[str, t.Any]:
        """Installs unless complete, and returns the marker's content with ``changed``.

        Raises:
            EngineError: a step failed or the engine does not run on this machine; nothing usable is left behind.
        """
        with _locked(self._plan.root):
            if self.complete:
                refuse_unfit_engine(self.marker(), self._plan.machine)
                return {**self.marker(), "changed": False}
            if self._plan.path.exists():
                self._report("removing an interrupted installation", 0)
                shutil.rmtree(self._plan.path)
            self._build()
            return {**self.marker(), "changed": True}

    def marker(self) -> dict[str, t.Any]:
        """Content of the marker; empty when the engine is not complete."""
        document: dict[str, t.Any] = json.loads((self._plan.path / MARKER).read_text()) if self.complete else {}
        return document

    def _build(self) -> None:
        plan = self._plan
        interpreter = str(plan.path / "bin" / "python")
        self._step("making the virtual environment", [plan.uv, "venv", "--no-config", "--quiet", "--python", plan.python, str(plan.path)])
        install = [plan.uv, "pip", "install", "--quiet", "--python", interpreter, *plan.source.arguments()]
        self._step("installing the locked packages", [*install, "--no-deps", "--require-hashes", "--requirement", plan.lock_path])
        if plan.support:
            self._step("installing the CPU support package", [*install, "--no-deps", "--no-build-isolation", plan.support])
        packages = [str(path) for path in plan.path.glob("lib/python*/site-packages/sglang")]
        self._step("compiling bytecode", [interpreter, "-m", "compileall", "-q", "-j", "0", *packages])
        cuda_home = self._prove_compilers() if plan.compiles else ""
        proof = self._step("proving the engine", [interpreter, "-s", plan.prove, str(plan.path / FLAGS)])
        try:
            document = json.loads(proof.splitlines()[-1])
        except (ValueError, IndexError):
            raise EngineError(f"the engine's proof printed no result: {proof[-500:]!r}") from None
        asked = plan.lock.packages["sglang"]
        if document["version"] != asked:
            raise EngineError(f"sglang {document['version']} was installed where the lock pins {asked}: an index or find-links gave another version")
        refuse_unfit_engine(document, plan.machine)
        # uv's own lock of the environment is writable for everybody.
        with contextlib.suppress(FileNotFoundError):
            (plan.path / ".lock").unlink()
        document.update(format=FORMAT, name=plan.name, path=str(plan.path), python=interpreter, cuda_home=cuda_home)
        document.update(deviations=list(plan.lock.deviations), seconds=self._seconds)
        write_atomically(plan.path / MARKER, json.dumps(document, indent=1, sort_keys=True) + "\n", 0o644)

    def _prove_compilers(self) -> str:
        """Makes the engine's CUDA_HOME, and compiles and links a kernel with it as the engine will at run time."""
        home = toolkit.make_home(self._plan.path)
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / "kernel.cu"
            source.write_text(toolkit.SOURCE)
            command = [str(home / "bin" / "nvcc"), *toolkit.OPTIONS, "-o", str(source.with_suffix(".so")), str(source)]
            try:
                self._step("proving the compilers", command)
            except EngineError as error:
                raise EngineError(f"{error}; the lock pins {toolkit.toolchain(self._plan.lock.packages)}") from None
        return str(home)

    def _step(self, title: str, command: list[str]) -> str:
        self._report(title, 0)
        begun = time.monotonic()
        status, output, error = self._run(command)
        self._seconds[title] = round(time.monotonic() - begun, 2)
        if status != 0:
            raise EngineError(f"{title} failed: {explain(error or output)}")
        return output


def explain(output: str) -> str:
    """Returns one sentence for what uv or the proof printed before it failed."""
    for pattern, sentence in (
        (r"No space left on device", "the disk is full"),
        (
            r"undefined symbol: (?P<detail>nccl\w+)",
            "the NCCL library is not the one that torch was built with: it has no {0}; only the nvidia-nccl package that torch asks for may be installed",
        ),
        (r"CUDA compiler and CUDA toolkit headers are incompatible", "the CUDA compiler and the CUDA headers are of different versions"),
        (r"unsupported GNU version! (?P<detail>[^!]*)", "the host's C++ compiler does not fit the CUDA compiler: {0}"),
        (r"cannot execute .cc1plus|(?:gcc|g\+\+): (?:not found|No such file)", "the host has no C++ compiler: install g++ (gcc-c++ on RedHat)"),
        (r"Failed to fetch: `?(?P<detail>[^`\s]+)|error sending request for url \((?P<url>[^)]+)\)", "the index cannot be reached ({0})"),
        (r"Hash mismatch for `?(?P<detail>[^`\s]+)", "the file for {0} is not the one the lock names"),
        (
            r"Because (?P<detail>.*?) (?:was not found|has no wheels)|Because there is no version of (?P<version>\S+)",
            "no wheel was found for {0}: check the index, find-links and offline settings",
        ),
    ):
        found = re.search(pattern, output)
        if found:
            detail = next((value for value in found.groupdict().values() if value), "")
            return sentence.format(detail)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " / ".join(lines[-4:])[:600] or "no output"


@contextlib.contextmanager
def _locked(root: Path) -> t.Iterator[None]:
    """Waits for the lock of an engines directory: several inventory hosts can be one machine."""
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    with open(root / ".lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def engines_in_use(root: Path, units: Path = Path("/etc/systemd/system"), releases: Path = Path("/var/lib/llmops-inference")) -> set[str]:
    """Returns the names of engines that a server unit, a kept release or a running process of this host uses."""
    mark = re.compile(re.escape(str(root)) + r"/([^/\s\"]+)/")
    texts = (path.read_text() for path in (*units.glob("sglang-*.service"), *releases.glob("*/releases/*/unit.service")))
    used = {name for text in texts for name in mark.findall(text)}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            used |= set(mark.findall((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")))
    return used


def prune(root: Path, keep: int, used: set[str], current: str) -> list[str]:
    """Removes the oldest engines beyond ``keep``, never one that is used, and returns their names."""
    with _locked(root):
        # Remains without a marker (an interrupted installation or removal) go first.
        engines = sorted((path for path in root.iterdir() if path.is_dir()), key=lambda path: ((path / MARKER).exists(), path.stat().st_mtime), reverse=True)
        kept = [path for path in engines if path.name == current or path.name in used]
        spare = [path for path in engines if path not in kept]
        doomed = spare[max(0, keep - len(kept)) :]
        for path in doomed:
            scratch = path.with_name(f".removed-{path.name}-{os.getpid()}")
            path.rename(scratch)
            shutil.rmtree(scratch)
    return sorted(path.name for path in doomed)
