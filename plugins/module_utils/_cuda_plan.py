# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the role cuda has to do: which packages of which version, what stands in the way, and what goes wrong with packages and modules.

Package names: NVIDIA Driver Installation Guide (recent updates: from branch 590 on Ubuntu's packages lose the branch in their names), the archives of
Debian and Ubuntu, NVIDIA DCGM and Fabric Manager guides.
"""

from __future__ import annotations

import fnmatch
import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers, supported_cuda
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis

_BRANCH = re.compile(r"\d{3}")
_EXACT = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:-\S+)?|\d+")
# Branches: the last with Ubuntu names that carry it, the last for GPUs before Turing, the first without proprietary modules.
_SUFFIXED, _BEFORE_TURING, _OPEN_ONLY = 580, 580, 620
# Everything that comes with a driver, for apt's preferences: they only bite on the driver's own version.
APT_DRIVER_GLOBS = "*nvidia* libcuda1 libcudadebugger1 libnv* libxnvctrl* cuda-drivers* nvlink5*"


@dataclass(frozen=True)
class System:
    """The target.

    Attributes:
        family: ``Debian`` or ``RedHat``.
        distribution: ``Debian``, ``Ubuntu``, ``RedHat`` and its kin.
        container: whether it shares its host's kernel.
        kernel: release of the running kernel, whose headers DKMS needs; empty where they are somebody else's.
    """

    family: str
    distribution: str
    container: bool = False
    kernel: str = ""


@dataclass(frozen=True)
class Wish:
    """What the inventory says.

    Attributes:
        driver: ``none``, ``loaded``, a branch or a version.
        open_module: open kernel modules rather than proprietary ones.
        repository: ``distro``, ``nvidia`` or ``offline``.
        toolkit: ``from_engine``, ``none`` or a version.
        nccl: ``from_engine``, ``none`` or a version.
        persistence: the persistence daemon.
        fabric_manager: ``auto``, ``true`` or ``false``.
        dcgm: DCGM.
    """

    driver: str = "none"
    open_module: bool = True
    repository: str = "nvidia"
    toolkit: str = "from_engine"
    nccl: str = "from_engine"
    persistence: bool = True
    fabric_manager: str = "auto"
    dcgm: bool = False


@dataclass
class Plan:
    """What to do.

    Attributes:
        packages: package -> the version that it must begin with; empty for any.
        lead: the package whose version is the driver's; empty where no driver is asked for.
        driver: version or branch that the driver's packages must have; empty where none is asked for.
        installed: version of the driver's leading package, empty where it is missing.
        present: packages that are as wanted already -> their versions.
        kept: those among them, the driver's left out, that an upgrade must not move -> their versions.
        keep: all packages that are held at a version.
        of_driver: installed packages that have the driver's version, whether or not they are named here.
        cuda: CUDA version that the driver supports.
        kernel: whether kernel modules belong to it.
        change: whether a package must be installed or changed.
        driver_change: whether that touches the driver.
        services: units to enable and start.
        refusals: why nothing must be done, one sentence each.
        reboot: why a reboot is needed, empty where none is.
    """

    packages: dict[str, str] = field(default_factory=dict)
    lead: str = ""
    driver: str = ""
    installed: str = ""
    present: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    keep: list[str] = field(default_factory=list)
    of_driver: list[str] = field(default_factory=list)
    cuda: str = ""
    kernel: bool = False
    change: bool = False
    driver_change: bool = False
    services: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    reboot: str = ""


def upstream(version: str) -> str:
    """Returns a package's version without epoch and the distribution's revision: ``3:580.159.04-1.el9`` is ``580.159.04``."""
    return re.sub(r"^\d+:", "", version).split("-")[0]


def _begins(version: str, prefix: str) -> bool:
    """Versions are compared by their parts: 580 is no prefix of 5800."""
    return not prefix or version == prefix or version.startswith((prefix + ".", prefix + "-", prefix + "+", prefix + "~"))


def _fits(version: str, prefix: str) -> bool:
    """A package's version, which may have an epoch and a revision, against one that may have a revision."""
    return _begins(re.sub(r"^\d+:", "", version), prefix)


def driver_packages(system: System, repository: str, branch: int, open_module: bool) -> tuple[str, list[str]]:
    """Returns (the package whose version is the driver's, all packages of a compute-only driver).

    Args:
        system: the target.
        repository: where packages come from; offline packages are named as NVIDIA's.
        branch: the driver's branch.
        open_module: which kernel modules; in a container there are none.
    """
    flavour = "-open" if open_module else ""
    if system.family == "RedHat":
        module = "kmod-nvidia-open-dkms" if open_module else "kmod-nvidia-latest-dkms"
        return "nvidia-driver-cuda", ["nvidia-driver-cuda", *([] if system.container else [module])]
    if system.distribution == "Ubuntu":
        suffix = f"-{branch}-server" if repository == "distro" else (f"-{branch}" if branch <= _SUFFIXED else "")
        names = [f"libnvidia-compute{suffix}", f"nvidia-utils{suffix}"]
        return names[0], names if system.container else [*names, f"nvidia-dkms{suffix}{flavour}"]
    if repository == "distro":
        module = "nvidia-open-kernel-dkms" if open_module else "nvidia-kernel-dkms"
        return "libcuda1", ["libcuda1", "libnvidia-ml1", "nvidia-smi", *([] if system.container else [module])]
    module = "nvidia-kernel-open-dkms" if open_module else "nvidia-kernel-dkms"
    return "nvidia-driver-cuda", ["nvidia-driver-cuda", *([] if system.container else [module])]


def header_packages(system: System) -> dict[str, str]:
    """Returns the headers of the running kernel and of those to come, as package -> version: without them DKMS builds no module, and tells nobody."""
    if not system.kernel:
        return {}
    if system.family == "RedHat":
        return {"kernel-devel": system.kernel.rpartition(".")[0]}
    # 6.1.0-40-amd64 -> amd64, 6.12.48+deb13-cloud-amd64 -> cloud-amd64, 6.8.0-60-generic -> generic
    flavour = re.sub(r"^[\d.]+(?:\+\w+)?-(?:\d[\w.]*-)?", "", system.kernel)
    return {f"linux-headers-{system.kernel}": "", f"linux-headers-{flavour}": ""}


def fabric_package(system: System, repository: str, branch: int) -> str:
    """Returns the fabric manager's package; empty where a repository has none."""
    if repository == "distro":
        return f"nvidia-fabricmanager-{branch}" if system.distribution == "Ubuntu" else ""
    if branch >= _SUFFIXED:
        return "nvidia-fabricmanager"
    return "nvidia-fabric-manager" if system.family == "RedHat" else f"nvidia-fabricmanager-{branch}"


def persistence_package(system: System, repository: str, branch: int) -> str:
    """Returns the package with the persistence daemon."""
    if system.distribution == "Ubuntu" and (repository == "distro" or branch <= _SUFFIXED):
        return f"nvidia-compute-utils-{branch}{'-server' if repository == 'distro' else ''}"
    return "nvidia-persistenced"


def _wanted_driver(wish: Wish, system: System, facts: t.Mapping[str, t.Any], plan: Plan) -> str:
    """Returns the branch or version to install, empty for none; says in the plan what stands in its way."""
    module = str(facts["driver"]["module"])
    if wish.driver in ("none", ""):
        return ""
    if wish.driver == "loaded":
        if not module:
            plan.refusals.append("cuda_driver: loaded means the userspace of the loaded kernel module's version, and no NVIDIA module is loaded")
        return module
    if not (_BRANCH.fullmatch(wish.driver) or _EXACT.fullmatch(wish.driver)):
        plan.refusals.append(f"cuda_driver {wish.driver!r} is none of none, loaded, a branch such as '580', a version such as '580.159.04' (in quotes)")
        return ""
    if system.container and module:
        if not _begins(module, wish.driver):
            plan.refusals.append(
                f"cuda_driver {wish.driver}: this is a container, its host's kernel module is {module}, and the userspace must be of the same version "
                "(cuda_driver: loaded follows it)"
            )
        return module
    return wish.driver


def make_plan(wish: Wish, system: System, facts: t.Mapping[str, t.Any], installed: t.Mapping[str, str]) -> Plan:
    """Returns what to do on one host. Nothing here asks the host.

    Args:
        wish: the inventory.
        system: the target.
        facts: what gpu_facts found.
        installed: package -> version.
    """
    plan = Plan(kernel=not system.container)
    plan.driver = _wanted_driver(wish, system, facts, plan)
    # Of the driver that will be there, not of the one that is.
    plan.cuda = supported_cuda(plan.driver) or str(facts["driver"]["cuda"]) or "13"
    if plan.driver:
        _plan_driver(plan, wish, system, facts, installed)
    if _asks_version(plan, "cuda_toolkit", wish.toolkit, "13.0"):
        plan.packages[f"cuda-toolkit-{'-'.join(map(str, numbers(wish.toolkit)[:2]))}"] = ""
    if _asks_version(plan, "cuda_nccl", wish.nccl, "2.28.9"):
        names = ("libnccl", "libnccl-devel") if system.family == "RedHat" else ("libnccl2", "libnccl-dev")
        plan.packages.update(dict.fromkeys(names, wish.nccl))
    if wish.dcgm:
        plan.packages[f"datacenter-gpu-manager-4-cuda{numbers(plan.cuda)[0]}"] = ""
        plan.services.append("nvidia-dcgm.service")
        if wish.repository == "distro":
            plan.refusals.append("cuda_dcgm_enabled: DCGM is in NVIDIA's repository only (cuda_repository: nvidia)")
    if wish.repository == "distro" and any(name.startswith(("cuda-toolkit-", "libnccl")) for name in plan.packages):
        plan.refusals.append("cuda_toolkit and cuda_nccl versions are in NVIDIA's repository only (cuda_repository: nvidia)")
    there = {name: installed[name] for name in plan.packages if name in installed}
    right = {name: version for name, version in there.items() if _fits(version, plan.packages[name]) and _built_for(version, plan.cuda)}
    plan.change = len(right) < len(plan.packages)
    # A driver changes as a whole: of two versions each may be of the wanted branch.
    plan.present = {name: version for name, version in right.items() if not (plan.driver_change and _is_of_driver(name))}
    versioned = [name for name, prefix in plan.packages.items() if prefix and not name.startswith(("linux-headers", "kernel-devel"))]
    plan.keep = versioned
    plan.kept = {name: plan.present[name] for name in versioned if name in plan.present and not _is_of_driver(name)}
    plan.of_driver = [name for name, version in installed.items() if plan.installed and upstream(version) == plan.installed and _is_of_driver(name)]
    return plan


def _asks_version(plan: Plan, variable: str, value: str, example: str) -> bool:
    if value in ("from_engine", "none"):
        return False
    if not _VERSION.fullmatch(value):
        plan.refusals.append(f"{variable} {value!r} is none of from_engine, none, a version such as '{example}' (in quotes)")
        return False
    return True


def _plan_driver(plan: Plan, wish: Wish, system: System, facts: t.Mapping[str, t.Any], installed: t.Mapping[str, str]) -> None:
    branch = numbers(plan.driver)[0]
    if wish.repository == "distro" and system.family == "RedHat":
        plan.refusals.append(f"{system.distribution} has no NVIDIA driver of its own: cuda_repository: nvidia or offline")
    plan.lead, names = driver_packages(system, wish.repository, branch, wish.open_module)
    versions = {upstream(installed[name]) if name in installed else "" for name in names}
    right = all(_begins(version, plan.driver) and version for version in versions)
    plan.installed = upstream(installed.get(plan.lead, ""))
    plan.driver_change = not right or len(versions) > 1
    target = plan.installed if not plan.driver_change else plan.driver
    plan.packages.update(dict.fromkeys(names, target))
    if plan.kernel:
        _judge_module(plan, wish, branch, facts)
        plan.packages.update(header_packages(system))
        # Makes the device nodes of CUDA.
        plan.packages["nvidia-modprobe"] = ""
    has_gpu = bool(facts["gpus"] or facts["pci"])
    if wish.persistence and not system.container:
        # Debian's own is of another version than its driver.
        other = wish.repository == "distro" and system.distribution == "Debian"
        plan.packages[persistence_package(system, wish.repository, branch)] = "" if other else target
        if has_gpu:
            plan.services.append("nvidia-persistenced.service")
    if wish.fabric_manager == "true" or (wish.fabric_manager == "auto" and facts["fabric_manager"]["needed"] and not system.container):
        name = fabric_package(system, wish.repository, branch)
        if not name:
            plan.refusals.append(f"{system.distribution} has no fabric manager: cuda_repository: nvidia")
        else:
            plan.packages[name] = target
            plan.services.append("nvidia-fabricmanager.service")
    loaded = str(facts["driver"]["module"])
    if plan.kernel and not plan.driver_change and loaded and loaded != plan.installed:
        plan.reboot = f"driver {plan.installed} is installed and the kernel still runs module {loaded}"
    if plan.kernel and not plan.driver_change and loaded == plan.installed and bool(facts["driver"]["module_open"]) != wish.open_module:
        plan.reboot = f"the {'open' if wish.open_module else 'proprietary'} kernel modules are installed and the kernel still runs the other ones"
    if plan.kernel and not plan.driver_change and not loaded and facts["driver"]["nouveau"]:
        plan.reboot = f"driver {plan.installed} is installed and nouveau, which was loaded before it, still holds the GPU"


def _judge_module(plan: Plan, wish: Wish, branch: int, facts: t.Mapping[str, t.Any]) -> None:
    if not wish.open_module and branch >= _OPEN_ONLY:
        plan.refusals.append(f"driver branch {branch} has open kernel modules only: cuda_driver_open_enabled: true")
    for gpu in facts["gpus"]:
        capability = numbers(str(gpu["compute_capability"]))
        if not capability:
            continue
        if capability < (7, 5) and wish.open_module:
            plan.refusals.append(f"GPU {gpu['index']} ({gpu['name']}) is older than Turing and has no open kernel module: cuda_driver_open_enabled: false")
        if capability < (7, 5) and branch > _BEFORE_TURING:
            plan.refusals.append(f"GPU {gpu['index']} ({gpu['name']}) is older than Turing: driver branch {_BEFORE_TURING} is the last for it")
        if capability >= (10, 0) and not wish.open_module:
            plan.refusals.append(f"GPU {gpu['index']} ({gpu['name']}) needs the open kernel module: cuda_driver_open_enabled: true")


def running_refusal(plan: Plan, servers: t.Sequence[str], allowed: bool) -> str:
    """Returns why the driver must not change now, empty where it may.

    Args:
        plan: what would be done.
        servers: running units of this collection.
        allowed: ``cuda_driver_change_running_enabled``.
    """
    if not plan.driver_change or not servers or allowed:
        return ""
    step = f"from {plan.installed} to {plan.driver}" if plan.installed else f"to {plan.driver}"
    return (
        f"the driver would change {step} while {', '.join(servers)} runs: a server loses the driver's library under its feet. Stop it first, or say "
        "cuda_driver_change_running_enabled. Nothing was changed."
    )


def parse_madison(text: str, only: str = "") -> dict[str, list[str]]:
    """Returns package -> versions, newest first, from ``apt-cache madison``.

    Args:
        text: what it printed.
        only: address of a repository: a package that it has is taken from nowhere else (sources do not mix).
    """
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == 3 and not row[2].endswith("Sources")]
    place = _place(only)
    own = {row[0] for row in rows if place and place == _place(row[2])}
    found: dict[str, list[str]] = {}
    for name, version, source in rows:
        versions = found.setdefault(name, [])
        if version not in versions and (name not in own or place == _place(source)):
            versions.append(version)
    return found


def _place(source: str) -> str:
    """Returns the address of ``file:/srv/apt  Packages`` as apt writes it."""
    return source.partition(" ")[0].rstrip("/").replace("file:///", "file:/")


def choose_versions(plan: Plan, available: t.Mapping[str, t.Sequence[str]], held: t.Sequence[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Returns (package -> version to pin, or empty for any; refusals).

    Args:
        plan: what is wanted.
        available: package -> versions, newest first.
        held: packages that somebody holds by hand.
    """
    # What is right already stays: it may be held, and a repository may have dropped it.
    candidates = {name: [plan.present[name]] if name in plan.present else available.get(name, ()) for name in plan.packages}
    refusals = [_not_there(name) for name, versions in candidates.items() if not versions]
    stuck = sorted(name for name in held if name not in plan.present and (name in plan.packages or (plan.driver_change and name in plan.of_driver)))
    if stuck:
        refusals.append(f"{', '.join(stuck)} is held by hand (`apt-mark hold`) and would have to change: `apt-mark unhold {' '.join(stuck)}` first")
    if refusals:
        return {}, refusals
    chosen: dict[str, str] = {}
    driver = ""
    for name, prefix in plan.packages.items():
        wanted = driver if driver and prefix == plan.driver else prefix
        fits = [version for version in candidates[name] if _fits(version, wanted) and _built_for(version, plan.cuda)]
        if not fits:
            there = ", ".join(dict.fromkeys(upstream(version) for version in candidates[name]))
            build = f" for CUDA {plan.cuda}" if any(_fits(version, wanted) for version in candidates[name]) else ""
            refusals.append(f"{name} {wanted}{build} is not in the repository, which has {there}")
            continue
        if name == plan.lead:
            driver = upstream(fits[0])
        chosen[name] = (upstream(fits[0]) if _is_of_driver(name) else fits[0]) if prefix else ""
    return ({}, refusals) if refusals else (chosen, [])


def _not_there(name: str) -> str:
    if name.startswith("linux-headers"):
        return f"{name} is in no repository any more: reboot into the installed kernel first, or cuda_kernel_headers_enabled: false"
    return f"{name} is not in the repository: check cuda_repository and cuda_driver"


def _built_for(version: str, cuda: str) -> bool:
    """NCCL comes once for each CUDA version: ``2.28.9-1+cuda13.0``."""
    found = re.search(r"\+cuda(\d+)", version)
    return not found or not cuda or int(found[1]) <= numbers(cuda)[0]


def _is_of_driver(name: str) -> bool:
    """The container toolkit goes with any driver."""
    return "nvidia-container" not in name and any(fnmatch.fnmatch(name, pattern) for pattern in APT_DRIVER_GLOBS.split())


def apt_preferences(driver: str, others: t.Mapping[str, str]) -> str:
    """Returns a preferences file that keeps the driver at one version, whatever an unattended upgrade finds, and others at theirs.

    Args:
        driver: version of the driver; empty for none.
        others: further package -> version.
    """
    stanzas = [(APT_DRIVER_GLOBS, driver)] if driver else []
    stanzas += [(name, version) for name, version in sorted(others.items()) if version and version != driver]
    return "\n".join(f"Package: {name}\nPin: version {version}*\nPin-Priority: 1001\n" for name, version in stanzas)


_APT = (
    (
        "apt_signed_by_conflict",
        r"Conflicting values set for option Signed-By regarding source (?P<detail>\S+)",
        "the repository {detail} is configured twice with different keys",
        "remove the other entry below /etc/apt (an older cuda*.list, most often)",
    ),
    (
        "apt_key_missing",
        # gpgv's words, and those of sqv, which apt of Debian 13 asks.
        r"NO_PUBKEY (?P<detail>[0-9A-F]+)|Missing key (?P<missing>[0-9A-F]+)",
        "the repository is signed with key {detail}, which is not the given one",
        "give the present key (cuda_repository_key): NVIDIA's was rotated in 2022",
    ),
    (
        "apt_key_expired",
        r"EXPKEYSIG (?P<detail>[0-9A-F]+)",
        "the repository's signature is by key {detail}, which has expired",
        "give the repository's present key",
    ),
    (
        "apt_key_expired",
        r"sqv returned an error code.*?(?P<detail>[Ee]xpired|SHA1)",
        "the repository's signature is by a key that is not accepted any more ({detail})",
        "give the repository's present key",
    ),
    (
        "apt_held",
        r"held broken packages|Held packages were changed",
        "packages are held, or their versions do not fit together",
        "look at `apt-mark showhold` and at /etc/apt/preferences.d",
    ),
    (
        "apt_unreachable",
        # Also said of a repository that is there and whose signature is the matter.
        r"Could not (?:resolve|connect to) '?(?P<detail>[^\s']+)|Failed to fetch (?P<url>\S+)(?!\S)(?!\s*(?:The following signatures|.*sqv))",
        "the repository cannot be reached ({detail})",
        "check cuda_repository_url",
    ),
    ("disk_full", r"No space left on device|don't have enough free space", "the disk is full", "free space"),
    ("dpkg_locked", r"Could not get lock (?P<detail>\S*\w)", "another package manager holds {detail}", "wait for it (an unattended upgrade?)"),
)


def explain_apt(output: str) -> list[Diagnosis]:
    """Returns what apt's errors mean, every cause that is found (case I02)."""
    found = []
    for code, pattern, cause, hint in _APT:
        match = re.search(pattern, output)
        if match:
            detail = next((value for value in match.groupdict().values() if value), "")
            found.append(Diagnosis(code, cause.format(detail=detail), [match[0]], hint))
    return found


def explain_module(modprobe: str, dkms: str, secure_boot: str, kernel: str) -> Diagnosis:
    """Returns why the kernel module cannot be loaded.

    Args:
        modprobe: its error.
        dkms: what ``dkms status`` prints.
        secure_boot: what ``mokutil --sb-state`` prints.
        kernel: release of the running kernel.
    """
    evidence = [line.strip() for line in modprobe.splitlines() if line.strip()][:3]
    if re.search(r"Key was rejected by service|Required key not available", modprobe):
        state = "Secure Boot is on and" if "enabled" in secure_boot else "the kernel checks modules, and"
        hint = "enroll the key that DKMS signs with (`mokutil --import /var/lib/dkms/mok.pub`, reboot, confirm at the console), or turn Secure Boot off"
        return Diagnosis("secure_boot_key", f"{state} the NVIDIA module's key is not enrolled", evidence, hint)
    if re.search(r"No such device", modprobe):
        return Diagnosis(
            "no_gpu_for_module", "the module finds no GPU that it drives", evidence, "an open module needs Turing or newer; nouveau may hold the GPU"
        )
    built = [line for line in dkms.splitlines() if line.startswith("nvidia") and f", {kernel}, " in line]
    if not built:
        hint = f"install the headers of the running kernel (linux-headers-{kernel}), then `dkms autoinstall`; after a kernel upgrade reboot first. A failed "
        hint += "build's log: /var/lib/dkms/nvidia/*/build/make.log"
        return Diagnosis("module_not_built", f"DKMS has built no NVIDIA module for the running kernel {kernel}", evidence or dkms.splitlines()[:3], hint)
    if not any("installed" in line for line in built):
        return Diagnosis("module_build_failed", f"DKMS could not build the module: {built[0].strip()}", evidence, "read /var/lib/dkms/nvidia/*/build/make.log")
    said = f" ({evidence[0]})" if evidence else ""
    return Diagnosis("module_not_loaded", f"the NVIDIA module cannot be loaded{said}", evidence, "read the kernel log")
