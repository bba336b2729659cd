#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that wants one token every 50 ms, until SIGTERM: what it saw of a server's absence.

rollback_client.py URL REPORT: writes requests, good answers, and every gap between two good answers of more than half a second (seconds; wall clock of its
begin). A server that was never there yet is no gap.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path

PAUSE, LONG, PATIENCE = 0.05, 0.5, 5.0
BODY = json.dumps({"input_ids": [1, 2, 3], "sampling_params": {"max_new_tokens": 1, "ignore_eos": True}}).encode()


def answers(opener: urllib.request.OpenerDirector, url: str) -> bool:
    """Whether one token came back."""
    request = urllib.request.Request(url, BODY, {"Content-Type": "application/json"})
    try:
        with opener.open(request, timeout=PATIENCE) as answer:
            return bool(answer.status == 200 and json.load(answer))
    except (OSError, ValueError):
        return False


def main(url: str, report: str) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    requests, good, last = 0, 0, None
    gaps: list[dict[str, float]] = []
    while not stop.wait(PAUSE):
        requests += 1
        if not answers(opener, url):
            continue
        now, good = time.monotonic(), good + 1
        if last is not None and now - last > LONG:
            gaps.append({"from": round(time.time() - (now - last), 3), "seconds": round(now - last, 3)})
        last = now
    open_gap = time.monotonic() - last if last is not None else None
    found = {"requests": requests, "good": good, "gaps": gaps, "since_last_good": open_gap}
    Path(report).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:3])
