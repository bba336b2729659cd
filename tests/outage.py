# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a host: asks a server every 50 ms, and prints the longest time in seconds between two good answers.

outage.py URL END: END is a number of seconds, or the path of a file: it ends when the file is there, and removes it.
"""

import os
import sys
import time
import urllib.request

url, end = sys.argv[1:3]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
begun = last = time.monotonic()
longest = 0.0
while not os.path.exists(end) if os.path.isabs(end) else time.monotonic() - begun < float(end):
    try:
        good = opener.open(url, timeout=2).status == 200
    except OSError:
        good = False
    now = time.monotonic()
    if good:
        longest, last = max(longest, now - last), now
    time.sleep(0.05)
if os.path.isabs(end):
    os.unlink(end)
    # It is stopped when the server answers, or will not.
    longest = max(longest, time.monotonic() - last)
print(round(longest, 2))
