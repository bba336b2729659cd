# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of all records in a real browser: desktop and phone, bright and dark, and whatever a record says stays text. Screenshots: $LLMOPS_REPORT_SHOTS."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_page import page
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commit, Commits
from ansible_collections.llmops.inference.tests.unit.report_records import ATTACK, baseline, by_host, hostile, weeks

FRAME = Path(__file__).with_name("frame.html")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# The sandbox of the browser needs what containers and root do not have; the page is our own.
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files", "--virtual-time-budget=8000"]
DESKTOP, PHONE = 1280, 390
BROKEN = ("compare=x,y&series=z&metric=q&sort=w&load=v&to=u", "compare=%3Cimg%3E", "=&&=", "find=%3Cb%3E")
RATIO = r"\d\.\d\d \(\d\.\d\d to"


def browse(folder, address, *options):
    """Runs the browser without a network, and returns what it printed."""
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}/profile"]
    command = [CHROMIUM, *OPTIONS, *offline, *options, address]
    return subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def told_commits(made):
    """What git tells of some records, of which the first is older than its clone."""
    ids = [one["inventory"]["commit"] for one in made]
    known = {one: Commit(one, "2026-11-24T09:00:00Z", "Ada", "Five draft steps <b>at once</b>") for one in ids[6:]}
    known[hostile()["inventory"]["commit"]] = Commit("", "", "", ATTACK)
    others = [Commit("c0ffee0" + "0" * 33, "2026-11-23T09:00:00Z", "Bob", ATTACK), Commit("dec0de0" + "0" * 33, "2026-11-22T09:00:00Z", "Bob", "Words")]
    return Commits(known, {(ids[5], ids[6]): Between(others, 7, "they are of two branches")})


@pytest.fixture(scope="session", name="site")
def make_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    made = weeks()
    text = page(by_host([*made, hostile()]), {"ct129": baseline(made[4])}, [f"ct129/{ATTACK}.json: it is no record"], told_commits(made))
    (folder / "index.html").write_text(text, encoding="utf-8")
    (folder / "empty.html").write_text(page({}, {}), encoding="utf-8")
    return folder


def compare(*names):
    return "compare=" + urllib.parse.quote(",".join(names))


# State in the address, width, page, and what a reader does. One run of the browser looks at all of them.
LOOKS = {
    "desktop": ("",),
    "phone": ("", PHONE),
    "sort by tok/s": ("", DESKTOP, "index.html", ("click", "#table th:nth-child(5) button")),
    "and once more": ("sort=tok&dir=down", DESKTOP, "index.html", ("click", "#table th:nth-child(5) button")),
    **{
        f"find {words}": ("", DESKTOP, "index.html", ("type", "#find", words))
        for words in ("h200", "ct129 nextn 0.5.19", "onerror", "draft steps", "nothing like it")
    },
    "history": ("series=ct129%7Cdecode",),
    "others": ("series=ct129%7Cdecode", DESKTOP, "index.html", ("click", "#history-table summary")),
    "choose": ("", PHONE, "index.html", ("choose", "#series", "ct129|random_ids"), ("choose", "#load", "64 streams"), ("choose", "#metric", "ttft_ms")),
    "slower": (compare("ct129/20261117T101500Z-decode-3494591af2ee", "ct129/20261124T101500Z-decode-9a8b7c6d5e4f"),),
    "differs": (compare("gpu-h200-1/20261110T101500Z-decode-aa01c4f3e9d0", "gpu-h200-1/20261120T101500Z-decode-aa01c4f3e9d0"),),
    "two servers": (compare("ct129/20261117T101500Z-decode-3494591af2ee", "gpu-h200-1/20261120T101500Z-decode-aa01c4f3e9d0"),),
    "other side": ("series=ct129%7Cdecode", DESKTOP, "index.html", ("choose", "#first", "ct129/20261103T101500Z-decode-77ab01c4f3e9")),
    "attack": ("series=ct129%7Cchat&find=onerror",),
    **{state: (state,) for state in BROKEN},
    "empty": ("", DESKTOP, "empty.html"),
    "dark": ("theme=dark",),
    "light": ("theme=light",),
}


@pytest.fixture(scope="session", name="looks")
def make_looks(site):
    asked = []
    for state, *more in LOOKS.values():
        width, name, *actions = [*more, *(DESKTOP, "index.html")[len(more) :]]
        asked.append((f"file://{site}/{name}#{state}", width, actions))
    dom = browse(site, f"file://{FRAME}#{urllib.parse.quote(json.dumps(asked))}", f"--window-size={DESKTOP},1000", "--dump-dom")
    return dict(zip(LOOKS, json.loads(html.unescape(re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL)[1]))))


@pytest.mark.parametrize("name", LOOKS)
def test_it_runs_alone_and_without_an_error(looks, name):
    told = looks[name]
    assert (told["errors"], told["ready"], told["images"], told["scripts"], told["requests"]) == ([], "yes", 0, 2, [])
    assert told["wide"] == told["narrow"], "tables scroll in their boxes, the page does not"


@pytest.mark.parametrize("name, width", [("desktop", DESKTOP), ("phone", PHONE)])
def test_it_fits_the_screen(looks, name, width):
    told = looks[name]
    assert (told["narrow"], len(told["ids"]), len(told["cards"]), told["dots"]) == (width, 16, 5, 9)
    assert told["smallest"] >= 10, "labels of the chart are no smaller on a phone"


def test_what_is_measured_now(looks):
    (card,) = [text for text in looks["desktop"]["cards"] if text.startswith("ct129, decode")]
    assert re.match(r"ct129, decode 58\.\d tok/s, .* 1 stream \u25b2 faster 1\.07 \(.*\) against the baseline 2026-11-30, release b16b00b5cafe", card)


def test_records_are_sorted_by_a_click(looks):
    told, again = looks["sort by tok/s"], looks["and once more"]
    assert told["sorted"] == ["tok/s \u25be"] and told["ids"][0].endswith("chat-deadbeef0001") and told["hash"] == "#sort=tok&dir=down"
    assert again["ids"] == told["ids"][::-1] and again["sorted"] == ["tok/s \u25b4"]


@pytest.mark.parametrize("words, count", [("h200", 2), ("ct129 nextn 0.5.19", 3), ("onerror", 1), ("draft steps", 10), ("nothing like it", 0)])
def test_records_are_found_by_words(looks, words, count):
    told = looks[f"find {words}"]
    assert (len(told["ids"]), told["found"]) == (count, f"{count} of 16")


def test_the_history_says_what_was_changed(looks):
    rows = looks["history"]["history"]
    assert len(rows) == 10
    assert re.match(r"2026-11-24 10:15 6 - enforce_piecewise_cuda_graph \+ speculative_num_steps 5 18d0005 .* 51\.\d .* \u25bc slower 0\.9\d ", rows[3])
    assert "contended" in rows[2] and "first record" in rows[9]


def test_the_history_has_the_messages_of_commits(looks):
    rows = looks["history"]["history"]
    assert "18d0005 Five draft steps <b>at once</b> 9 other commits since the record before they are of two branches" in rows[3]
    assert f"c0ffee0 2026-11-23 {ATTACK} dec0de0 2026-11-22 Words and 7 more" in looks["others"]["history"][3]
    assert "03d0005 git does not know it where this page was made" in rows[9] and "other commit" not in rows[9]
    assert ATTACK in looks["attack"]["history"][0]


def test_another_series_load_and_metric_are_chosen(looks):
    told = looks["choose"]
    assert told["dots"] == 2 and re.search(r" 4,0\d\d 4,0\d\d to 4,", told["history"][0])
    assert told["verdict"][0].startswith("\u25b2 faster at 4 streams, ratio 1.1"), "the comparison follows"


def test_two_records_are_compared(looks):
    told = looks["slower"]
    assert re.match(r"\u25bc slower 51\.\d against 55\.\d tok/s, ratio 0\.93 \(.*\)", told["verdict"][0])
    assert "Changed on purpose + speculative_num_steps 5" in told["comparison"]


def test_conditions_that_differ_are_said_and_there_is_no_ratio(looks):
    told = looks["differs"]
    assert told["verdict"] == ["not comparable driver differs"]
    assert "driver 580.159.04 585.10.01" in told["comparison"] and not re.search(RATIO, told["comparison"])


def test_records_of_two_servers_have_no_verdict(looks):
    told = looks["two servers"]
    assert told["verdict"] == ["No verdict for these two: they are of two servers."]
    assert "Hardware: links PHB NV18" in told["comparison"] and not re.search(RATIO, told["comparison"])


def test_the_other_side_is_chosen(looks):
    assert re.match(r"\u25b2 faster 58\.\d against 31\.\d tok/s, ratio 1\.8", looks["other side"]["verdict"][0])


def test_texts_of_records_stay_texts(looks):
    told = looks["attack"]
    assert told["ids"] == ["ct129/20261115T101500Z-chat-deadbeef0001"]
    assert told["skipped"] == [f"ct129/{ATTACK}.json: it is no record"]
    assert any(ATTACK in text for text in told["cards"]) and ATTACK in told["comparison"]


@pytest.mark.parametrize("state", BROKEN)
def test_a_broken_link_shows_the_page(looks, state):
    assert len(looks[state]["cards"]) == 5


def test_without_records(looks):
    told = looks["empty"]
    assert (told["cards"], told["ids"], told["charts"]) == ([], [], 0)


def test_dark_and_light(looks):
    assert (looks["dark"]["ground"], looks["light"]["ground"]) == ("rgb(18, 23, 29)", "rgb(245, 247, 250)")


@pytest.mark.parametrize(
    "name, size, state",
    [
        ("desktop", (DESKTOP, 3000), ""),
        ("dark", (DESKTOP, 3000), "theme=dark&series=ct129%7Crandom_ids&load=64%20streams"),
        ("phone", (PHONE, 4200), ""),
    ],
)
def test_screenshots(site, tmp_path, name, size, state):
    shots = Path(os.environ.get("LLMOPS_REPORT_SHOTS") or tmp_path)
    shots.mkdir(parents=True, exist_ok=True)
    target = shots / f"page-{name}.png"
    browse(site, f"file://{site}/index.html#{state}", f"--window-size={size[0]},{size[1]}", f"--screenshot={target}")
    width, height = (int.from_bytes(target.read_bytes()[place : place + 4], "big") for place in (16, 20))
    assert (width, height) == size and target.stat().st_size > 50_000
