# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give ansible-test's virtual environments a pip where its bootstrap script cannot be downloaded.

ansible-test runs a cached ``get_pip_<version>.py`` for this and fetches it from a site of its own. Under that name
this file does the same from what is at hand: the pip inside the interpreter, then the wanted release of it from the
configured package index.

``python get_pip_shim.py install`` puts a copy where the ansible-test of that Python will look.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import types
from typing import Any

GET_PIP_ONLY_OPTIONS = ("--no-setuptools", "--no-wheel")
# ansible-test clears the environment, and with it whatever tells pip which index to use and how to reach it.
INDEX_OPTIONS = (
    "index-url",
    "extra-index-url",
    "no-index",
    "find-links",
    "cert",
    "client-cert",
    "trusted-host",
    "proxy",
    "timeout",
    "retries",
)


def bootstrap(arguments: list[str], settings_path: str) -> int:
    """Install pip, then what ``get-pip.py`` was asked for, into the running interpreter's environment."""
    first = subprocess.run([sys.executable, "-m", "ensurepip", "--default-pip"], capture_output=True, text=True, check=False)
    if first.returncode:
        print(f"{sys.executable} has no usable ensurepip (Debian: python3-venv):\n{first.stderr}", file=sys.stderr)
        return first.returncode
    with open(settings_path, encoding="utf-8") as stream:
        settings = json.load(stream)
    with open(os.path.join(sys.prefix, "pip.conf"), "w", encoding="utf-8", opener=owner_only) as stream:
        stream.write("[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    wanted = [argument for argument in arguments if argument not in GET_PIP_ONLY_OPTIONS]
    return subprocess.run([sys.executable, "-m", "pip", "install", "--upgrade", *wanted], check=False).returncode


def install() -> None:
    """Let ansible-test's own code store this file in its cache, with pip's settings beside it.

    The name depends on the pip that a release of ansible-core pins, so its two functions that know are asked. A real
    get-pip.py already in the cache stays.
    """
    constants: Any = importlib.import_module("ansible_test._internal.constants")
    requirements: Any = importlib.import_module("ansible_test._internal.python_requirements")
    setup: Any = importlib.import_module("ansible_test._util.target.setup.requirements")
    pythons = [types.SimpleNamespace(version=version) for version in constants.SUPPORTED_PYTHON_VERSIONS]
    paths: list[str] = []
    setup.download_file = lambda url, path: shutil.copyfile(__file__, path)
    setup.execute_command = lambda command, env: paths.append(env["GET_PIP"])
    setup.log = lambda *args, **kwargs: None
    for pip in sorted({requirements.get_venv_packages(python)["pip"] for python in pythons}):
        setup.bootstrap("", {"pip_version": pip, "packages": [], "setuptools": False, "wheel": False})

    variables = {name: "PIP_" + name.upper().replace("-", "_") for name in INDEX_OPTIONS}
    settings = {name: os.environ[variable] for name, variable in variables.items() if os.environ.get(variable)}
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            ours = "Give ansible-test's virtual environments a pip" in stream.read()
        if ours:
            shutil.copyfile(__file__, path)
            with open(path + ".json", "w", encoding="utf-8", opener=owner_only) as stream:
                json.dump(settings, stream)


def owner_only(path: str, flags: int) -> int:
    """Open a file that may name an index together with its password."""
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    if sys.argv[1:] == ["install"]:
        install()
    else:
        sys.exit(bootstrap(sys.argv[1:], __file__ + ".json"))
