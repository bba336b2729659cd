#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another process on the GPU: takes its memory as soon as a trial has begun and the old server has left, and gives it back when the trial ends.

rollback_holder.py TRIAL LEAVE_GIB: TRIAL is the drop-in that exists as long as the trial does. Preflight cannot see this coming. Plain allocations only.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

GIB = 2**30
# The old server has left when this share of the GPU is free.
EMPTY = 0.9
SECONDS, PAUSE = 240, 0.05


def main(trial: Path, leave_gib: float) -> None:
    deadline = time.monotonic() + SECONDS
    torch.zeros(1, device="cuda")
    print("waiting", flush=True)
    while not trial.exists() or torch.cuda.mem_get_info()[0] < EMPTY * torch.cuda.mem_get_info()[1]:
        if time.monotonic() > deadline:
            sys.exit("no trial began")
        time.sleep(PAUSE)
    held = torch.empty(int(torch.cuda.mem_get_info()[0] - leave_gib * GIB), dtype=torch.uint8, device="cuda")
    print(f"holding {held.numel() / GIB:.1f} GiB, {torch.cuda.mem_get_info()[0] / GIB:.2f} GiB are left", flush=True)
    while trial.exists() and time.monotonic() < deadline:
        time.sleep(PAUSE)
    print("gone" if not trial.exists() else "out of time", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
