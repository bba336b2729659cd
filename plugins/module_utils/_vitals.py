# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Phases and vital signs of a start, read from the engine's log lines (wordings of SGLang 0.5.6 to 0.5.23).

Phases are in the order of the log; one that the log does not show is left out. With several ranks a phase begins when the first rank is in it and the last
one has left the phase before. ``weights`` and the kinds of graphs are entered again when a rank that has been there goes there again: up to 0.5.15 a draft
model is loaded, and gets its KV cache, when the target's graphs are captured already; later both are loaded in one go, and then it is one phase. What the
draft does to join the ranks takes no time and is no phase of its own.

Vital signs; GB are 2**30 bytes, sizes are per rank. What the log does not tell is absent.

======================= ==========================================================================================================
weights_seconds         seconds to load the weights, of the first rank that had them
weights_gb              GB of weights, of the same rank
weights_dtype           type of the weights, where it is set or logged
quantization            of the weights, in the engine's words (``fp8, fmt=e4m3``); ``none`` without
kv_cache_dtype          type of the KV cache
kv_cache_tokens         tokens that the KV cache holds
kv_cache_gb             GB of the KV cache: k, v (not with latent attention) and total
draft_kv_cache_gb       the same of the draft model
max_running_requests    requests that run at once
chunked_prefill_size    tokens of a chunk of prefill; -1 is off
context_length          tokens of prompt and answer
available_memory_gb     GB left when everything is set up (of the machine's memory on a CPU)
attention_backend       where prefill and decode have the same one
prefill_attention_backend, decode_attention_backend
                        where they have not
speculative_algorithm   as the engine resolved it (NEXTN becomes EAGLE); ``none`` without speculation
speculative_num_steps, speculative_eagle_topk, speculative_num_draft_tokens
                        of the speculation, where there is one
graphs_enabled          whether any graphs were captured
graphs                  by kind (decode, draft, prefill): count; sizes (batch sizes, of prefill tokens); seconds of the slowest rank; gb; backend
graphs_seconds          by the engine's name of the capture: seconds of the slowest rank
graphs_disabled_because by kind: the engine's reason for not capturing it
ranks                   by rank as the log names it (``TP0`` where it names none): weights_seconds, weights_gb, draft_weights_seconds, draft_weights_gb, and
                        available_gb: GB left before_weights, after_weights, after_kv_cache, after_graphs (each after the last of its kind)
startup_timings         the engine's own account (since 0.5.17), seconds: load_weight, kv_cache_allocation, scheduler_e2e, tokenizer_e2e, cuda_graph by kind
======================= ==========================================================================================================
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._journal import Line

TITLES = {
    "process": "starting the process",
    "arguments": "resolving the arguments",
    "distributed": "initialising distributed communication",
    "weights": "loading weights",
    "kv_cache": "allocating the KV cache",
    "decode_graphs": "capturing decode graphs",
    "draft_graphs": "capturing graphs of the draft model",
    "prefill_graphs": "capturing prefill graphs",
    "http": "starting the HTTP server",
    "warm_up": "warming up",
    "ready": "proving a generation",
}
PHASES = tuple(TITLES)

# Engines capture the kinds of graphs in different orders: none of them is before another.
_PLACES = {name: min(i, 5) if i <= 7 else i for i, name in enumerate(PHASES)}
_GRAPH_PHASES = {"decode": "decode_graphs", "draft": "draft_graphs", "prefill": "prefill_graphs"}
_AGAIN = ("weights", *_GRAPH_PHASES.values())
# The log says when a rank has left these.
_ENDING = ("distributed", "kv_cache", *_AGAIN)
_BEGIN, _END = "begin", "end"
_MARKS: tuple[tuple[t.Pattern[str], str, str], ...] = (
    (re.compile(r"(?:^|\] )server_args="), "arguments", _BEGIN),
    (re.compile(r"Init (?:torch distributed|parallel) begin"), "distributed", _BEGIN),
    (re.compile(r"Init (?:torch distributed|parallel) ends"), "distributed", _END),
    (re.compile(r"Load weight begin"), "weights", _BEGIN),
    (re.compile(r"Load weight end"), "weights", _END),
    (re.compile(r"(?:KV|Mamba) Cache (?:is allocated|VA upper bound)"), "kv_cache", _BEGIN),
    (re.compile(r"Memory pool end"), "kv_cache", _END),
    # Anchored: 0.5.16 says it in a line about sizing as well, before the end.
    (re.compile(r"(?:^|\] )max_total_num_tokens=\d"), "http", _BEGIN),
    (re.compile(r"Uvicorn running on"), "warm_up", _BEGIN),
    (re.compile(r"The server is fired up and ready to roll"), "ready", _BEGIN),
)
# "Capture cuda graph" (to 0.5.12), "Capture target decode CUDA graph", "Capture Frozen-KV MTP draft cuda graph", "Capture single-CG draft extend".
_CAPTURE = re.compile(r"Capture (?P<name>[\w -]*?)(?:\w+ graph |(?<=draft extend ))(?P<edge>begin|end)\b", re.IGNORECASE)
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?((?: [A-Z_]+\d+)*)\]")
_FLOAT = r"(-?[\d.]+)"


def _rank(text: str) -> str:
    """The rank that logged a line, from the last stamp in it: a progress bar has the line after it glued to it."""
    stamps = _STAMP.findall(text)
    return stamps[-1].strip() if stamps else ""


def _kind(name: str) -> str:
    """The kind of a capture, by its name in the log."""
    words = name.lower()
    if "draft" in words:
        return "draft"
    return "prefill" if "prefill" in words or "piecewise" in words else "decode"


def graph_kinds(vitals: t.Mapping[str, t.Any]) -> list[str]:
    """Returns the kinds of graphs that were captured, also from vital signs of a time when only their seconds were kept."""
    return sorted(set(vitals.get("graphs", {})) | {_kind(name) for name in vitals.get("graphs_seconds", {})})


class _Phases:
    """Where the ranks are, and where with that the start is."""

    def __init__(self, started: float) -> None:
        self.entered: list[tuple[str, float]] = [("process", started)]
        self._next = "process"
        self._open: dict[str, str] = {}
        self._been: dict[str, set[str]] = {}
        self._loads: dict[str, int] = {}
        self._pooled = False

    @property
    def present(self) -> str:
        return self.entered[-1][0]

    def loading(self) -> tuple[int, int]:
        """How many ranks have loaded their weights, and how many there are."""
        most = max(self._loads.values(), default=0)
        return sum(loads == most for loads in self._loads.values()), len(self._loads)

    def begin(self, phase: str, rank: str, seconds: float) -> None:
        been = self._been.setdefault(rank, set())
        again = phase in been and phase in _AGAIN
        been.add(phase)
        self._note(phase, rank)
        entered = {name for name, _begun in self.entered} | {self._next}
        if again or (phase not in entered and _PLACES[phase] >= _PLACES[self._next]):
            self._next = phase
        self._settle(seconds)

    def _note(self, phase: str, rank: str) -> None:
        if phase in ("distributed", "weights"):
            self._loads.setdefault(rank, 0)
        if phase in ("warm_up", "ready"):
            self._open.clear()
        elif phase in _ENDING:
            self._open[rank] = phase
        else:
            self._open.pop(rank, None)
        if phase == "kv_cache":
            self._pooled = True
        if phase == "weights" and self.present == "kv_cache" and not self._pooled:
            # Nothing was allocated: it was only between two loads.
            self.entered.pop()
            self._next = self.present

    def end(self, phase: str, rank: str, seconds: float) -> None:
        if phase == "kv_cache":
            self.begin(phase, rank, seconds)
        if self._open.get(rank) == phase:
            del self._open[rank]
        if phase == "weights":
            self._loads[rank] = self._loads.get(rank, 0) + 1
            loaded, ranks = self.loading()
            # Since 0.5.19 weights may also be said to end behind the graphs: loaded beside their capture.
            if loaded == ranks and _PLACES[self._next] <= _PLACES["weights"]:
                self._next, self._pooled = "kv_cache", False
        self._settle(seconds)

    def _settle(self, seconds: float) -> None:
        if self._next != self.present and self.present not in self._open.values():
            self.entered.append((self._next, seconds))


# The target model comes first: a draft model's lines and those of further ranks do not replace its values.
_SIGNS: tuple[tuple[str, t.Pattern[str], t.Callable[[str], t.Any]], ...] = (
    # 0.5.6 names the type there; up to 0.5.12 the KV cache's has a line of its own.
    ("weights_dtype", re.compile(r"Load weight end\..*?dtype=(?:torch\.)?(\w+)"), str),
    ("kv_cache_dtype", re.compile(r"Using KV cache dtype: (?:torch\.)?(\w+)"), str),
    ("kv_cache_dtype", re.compile(r"KV [Cc]ache (?:is )?allocated\..*?dtype: (?:torch\.)?(\w+)"), str),
    ("kv_cache_tokens", re.compile(r"(?:^|\] )max_total_num_tokens=(\d+)"), int),
    ("chunked_prefill_size", re.compile(r"(?:^|\] )max_total_num_tokens=.*?chunked_prefill_size=(-?\d+)"), int),
    ("max_running_requests", re.compile(r"(?:^|\] )max_total_num_tokens=.*?max_running_requests=(\d+)"), int),
    ("context_length", re.compile(r"(?:^|\] )max_total_num_tokens=.*?context_len=(\d+)"), int),
    ("available_memory_gb", re.compile(rf"(?:^|\] )max_total_num_tokens=.*?available_\w+_mem={_FLOAT} GB"), float),
)
_WEIGHTS_END = re.compile(r"Load weight end\. (.*)")
_AVAILABLE: tuple[tuple[str, t.Pattern[str]], ...] = (
    ("before_weights", re.compile(rf"Load weight begin\. avail mem={_FLOAT} GB")),
    ("after_weights", re.compile(rf"Load weight end\..*avail mem={_FLOAT} GB")),
    ("after_kv_cache", re.compile(rf"Memory pool end\. avail mem={_FLOAT} GB")),
    ("after_kv_cache", re.compile(rf"Post-capture KV sizing: KV cache allocated\..*avail mem={_FLOAT} GB")),
    ("after_graphs", re.compile(rf"Capture .*\bend\b.*avail mem={_FLOAT} GB", re.IGNORECASE)),
)
_ELAPSED = re.compile(rf"elapsed(?:=|: ){_FLOAT} s")
_USED = re.compile(rf"mem usage={_FLOAT} GB")
_POOL = re.compile(
    rf"(?P<resized>Post-capture KV sizing: )?(?P<draft>draft )?KV [Cc]ache (?:is )?allocated\..*?(?:K size: {_FLOAT} GB, V|KV) size: {_FLOAT} GB"
)
_SIZES = re.compile(r"Capture .*?(?:\bbs=|num_tokens=|graph bs |num tokens:? )\[([\d, ]+)\]", re.IGNORECASE)
_CAPTURE_BACKEND = re.compile(r"backend=(?:Backend\.)?(\w+)")
_DISABLED = re.compile(r"(?:Disable (?P<what>[\w ]*?) ?CUDA graph(?: capture)?|Cuda graph is disabled) (?:because|for) (?:of )?(?P<why>.+?)\.?$", re.IGNORECASE)
_TIMINGS = re.compile(r"Engine startup timings \(s\): (.*?)cuda_graph=\{(.*?)\}(.*)")
_ARGUMENTS = ("dtype", "quantization", "attention_backend", "prefill_attention_backend", "decode_attention_backend")


def _numbers(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"(\w+)=(-?[\d.]+)", text)}


def _argument(text: str, name: str) -> str:
    """A field of the resolved arguments, from ``ServerArgs(name='x')`` (to 0.5.17) or ``{'name': 'x'}``; empty where there is none."""
    found = re.search(rf"(?<!\w){name}'?(?:=|: )('(?:[^'\\]|\\.)*'|[^,)}}\s]+)", text)
    return found.group(1).strip("'") if found else ""


class _Captures:
    """What was captured, by rank and the engine's name of the capture."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], dict[str, t.Any]] = {}
        self._present: dict[str, str] = {}

    def sizes(self, rank: str) -> int:
        """How many graphs a rank captures just now; 0 where that is not known."""
        return len(self._all.get((rank, self._present.get(rank, "")), {}).get("sizes", []))

    def read(self, text: str, rank: str) -> bool:
        """Returns whether a capture has ended."""
        found = _CAPTURE.search(text)
        if found:
            self._present[rank] = found.group("name").strip() or "decode"
        if rank not in self._present:
            return False
        capture = self._all.setdefault((rank, self._present[rank]), {})
        sizes = _SIZES.search(text)
        if sizes:
            capture["sizes"] = [int(size) for size in sizes.group(1).split(",")]
        if not found:
            return False
        backend = _CAPTURE_BACKEND.search(text)
        if backend:
            capture["backend"] = backend.group(1)
        if found.group("edge").lower() == _BEGIN:
            return False
        capture["ended"] = True
        for key, pattern in (("seconds", _ELAPSED), ("gb", _USED)):
            value = pattern.search(text)
            if value:
                # A draft of several layers has a capture for each, all of one name.
                capture[key] = round(capture.get(key, 0.0) + float(value.group(1)), 2)
        return True

    def signs(self) -> dict[str, t.Any]:
        """Returns the vital signs of all captures so far."""
        graphs: dict[str, dict[str, t.Any]] = {}
        seconds: dict[str, float] = {}
        for name in dict.fromkeys(name for (_rank, name), capture in self._all.items() if capture.get("ended")):
            ranks = [capture for (_rank, other), capture in self._all.items() if other == name]
            entry = graphs.setdefault(_kind(name), {})
            for key in ("seconds", "gb"):
                values = [capture[key] for capture in ranks if key in capture]
                if values:
                    entry[key] = round(entry.get(key, 0.0) + max(values), 2)
                    if key == "seconds":
                        seconds[name] = max(values)
            # Rank 0 alone may log the sizes.
            told = {key: value for capture in reversed(ranks) for key, value in capture.items()}
            if "sizes" in told:
                entry["count"] = entry.get("count", 0) + len(told["sizes"])
            for key in ("sizes", "backend"):
                if key in told:
                    entry.setdefault(key, told[key])
        return {"graphs": graphs, "graphs_enabled": True, **({"graphs_seconds": seconds} if seconds else {})}


class _Signs:
    """Collects the vital signs."""

    def __init__(self) -> None:
        self.vitals: dict[str, t.Any] = {}
        self.captures = _Captures()
        self._loaded: dict[str, int] = {}
        self._pool_rank: str | None = None
        self._pool_draft = False
        self._loading_seen = False

    def drafting(self, rank: str) -> bool:
        """Whether what a rank loads now is the draft model: it has loaded the target."""
        return self._loaded.get(rank, 0) > 0

    def read(self, text: str, rank: str) -> None:
        for name, pattern, convert in _SIGNS:
            found = pattern.search(text)
            if found:
                self.vitals.setdefault(name, convert(found.group(1)))
        self._read_memory(text, rank)
        self._read_weights(text, rank)
        self._read_pool(text, rank)
        self._read_disabled(text)
        if self.captures.read(text, rank):
            self.vitals.update(self.captures.signs())
        if _MARKS[0][0].search(text):
            self._read_arguments(text)
        timings = _TIMINGS.search(text)
        if timings:
            self.vitals["startup_timings"] = {**_numbers(timings.group(1) + timings.group(3)), "cuda_graph": _numbers(timings.group(2))}
        self._loading_seen = self._loading_seen or "Load weight begin" in text
        if "kv_cache_tokens" in self.vitals and self._loading_seen:
            # Captures are logged between the two.
            self.vitals.setdefault("graphs_enabled", False)

    def _of_rank(self, rank: str) -> dict[str, t.Any]:
        signs: dict[str, t.Any] = self.vitals.setdefault("ranks", {}).setdefault(rank or "TP0", {})
        return signs

    def _read_memory(self, text: str, rank: str) -> None:
        for step, pattern in _AVAILABLE:
            found = pattern.search(text)
            if found:
                left = self._of_rank(rank).setdefault("available_gb", {})
                if step != "before_weights" or step not in left:
                    left[step] = float(found.group(1))

    def _read_weights(self, text: str, rank: str) -> None:
        found = _WEIGHTS_END.search(text)
        if not found:
            return
        draft = "draft_" if self.drafting(rank) else ""
        self._loaded[rank] = self._loaded.get(rank, 0) + 1
        for name, pattern in (("weights_seconds", _ELAPSED), ("weights_gb", _USED)):
            value = pattern.search(found.group(1))
            # A CPU engine may have "-0.00 GB".
            if value and not value.group(1).startswith("-"):
                signs, number = self._of_rank(rank), float(value.group(1))
                signs[draft + name] = round(signs.get(draft + name, 0.0) + number, 2)
                if not draft:
                    self.vitals.setdefault(name, number)
        quantization = re.search(r"quant=(.+?), avail mem", found.group(1))
        if not draft and quantization:
            self.vitals["quantization"] = quantization.group(1)
        elif not draft:
            self.vitals.setdefault("quantization", "none")

    def _read_pool(self, text: str, rank: str) -> None:
        found = _POOL.search(text)
        if found and self._pool_rank in (None, rank):
            self._pool_rank = rank
            k, last = found.group(3), float(found.group(4))
            sizes = {"total": last} if k is None else {"k": float(k), "v": last, "total": round(float(k) + last, 2)}
            name = "draft_kv_cache_gb" if found.group("draft") or (self._pool_draft and not found.group("resized")) else "kv_cache_gb"
            # One with a sliding window has two pools.
            known = {} if found.group("resized") else self.vitals.get(name, {})
            self.vitals[name] = {part: round(known.get(part, 0.0) + gb, 2) for part, gb in sizes.items()}
        if "Memory pool end" in text and self._pool_rank == rank:
            self._pool_draft = True

    def _read_disabled(self, text: str) -> None:
        found = _DISABLED.search(text)
        if found:
            # Of the draft model, when the target's are there: the engine does not always say whose.
            kind = _kind(found.group("what") or "")
            if kind not in self.vitals.get("graphs", {}):
                self.vitals.setdefault("graphs_disabled_because", {}).setdefault(kind, found.group("why"))

    def _read_arguments(self, text: str) -> None:
        known = {name: _argument(text, name) for name in _ARGUMENTS if _argument(text, name) not in ("", "None", "auto")}
        signs = {"weights_dtype": known.get("dtype"), "quantization": known.get("quantization")}
        prefill, decode = (known.get(f"{stage}_attention_backend", known.get("attention_backend")) for stage in ("prefill", "decode"))
        signs.update({"attention_backend": prefill} if prefill == decode else {"prefill_attention_backend": prefill, "decode_attention_backend": decode})
        for name, word in signs.items():
            if word:
                self.vitals.setdefault(name, word)
        algorithm = _argument(text, "speculative_algorithm")
        if algorithm:
            self.vitals["speculative_algorithm"] = "none" if algorithm == "None" else algorithm
        if algorithm not in ("", "None"):
            for name in ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"):
                if _argument(text, name).isdigit():
                    self.vitals[name] = int(_argument(text, name))


# "38% Completed | 3/8 [" of weights, "  6%|...| 2/36 [" of graphs.
_BAR = re.compile(r"(?P<percent>\d+)%(?: Completed)? ?\|(?:[^|\[]*\|)? ?(?P<done>\d[\w.]*)/(?P<total>\d[\w.]*) \[")
_NOUNS = {phase: f"{kind} graph" for kind, phase in _GRAPH_PHASES.items()}


def _progress(text: str, phase: str) -> str:
    """What a progress bar says, in short; empty where the line has none. Ranks write their bars into one line: the last one counts."""
    bars = list(_BAR.finditer(text))
    if not bars:
        return ""
    done, total, percent = (bars[-1].group(name) for name in ("done", "total", "percent"))
    what = text[bars[-2].end() if len(bars) > 1 else 0 : bars[-1].start()]
    amount = f"{done} of {total}, {percent} %"
    for word, label in (("Compiling", "compiling"), ("DeepGEMM", "DeepGEMM warm-up"), ("shards", "shard")):
        if word in what:
            return f"{label} {amount}"
    return f"{_NOUNS[phase]} {amount}" if phase in _NOUNS else amount


class StartLog:
    """Follows one start. Feed it lines; read ``phase``, ``detail``, :meth:`durations` and ``vitals``. What a ready server logs is not read.

    Args:
        started: wall-clock seconds at which the unit was started.

    Attributes:
        detail: how far the present phase is, in a few words ("shard 3 of 8, 38 %"); empty where the log does not say.
    """

    def __init__(self, started: float) -> None:
        self._phases = _Phases(started)
        self._signs = _Signs()
        self.detail = ""

    @property
    def phase(self) -> str:
        """The phase the start is in."""
        return self._phases.present

    @property
    def said_ready(self) -> bool:
        """Whether the engine has said that it is ready."""
        return self.phase == "ready"

    @property
    def vitals(self) -> dict[str, t.Any]:
        """The vital signs so far."""
        return self._signs.vitals

    def feed(self, lines: t.Iterable[Line]) -> None:
        """Takes the next lines of the journal."""
        for line in lines:
            if self.said_ready:
                return
            self._take(line)

    def _take(self, line: Line) -> None:
        rank = _rank(line.text)
        before = self.phase
        mark, edge = _read_mark(line.text)
        drafting = mark == "weights" and self._signs.drafting(rank)
        if edge == _BEGIN:
            self._phases.begin(mark, rank, line.seconds)
        elif edge == _END:
            self._phases.end(mark, rank, line.seconds)
        self._signs.read(line.text, rank)
        if self.phase != before:
            self.detail = ""
        self.detail = self._detail(line.text, rank, mark, edge, drafting) or self.detail

    def _detail(self, text: str, rank: str, mark: str, edge: str, drafting: bool) -> str:
        if not edge and not _SIZES.search(text):
            told = _progress(text, self.phase)
            return f"draft model: {told}" if told and self.detail.startswith("draft model") else told
        if self.phase in _NOUNS:
            sizes = self._signs.captures.sizes(rank)
            return f"{sizes} {_NOUNS[self.phase]}s" if sizes else ""
        if (mark, self.phase) != ("weights", "weights"):
            return ""
        if edge == _BEGIN:
            return "draft model" if drafting else ""
        loaded, ranks = self._phases.loading()
        return f"{loaded} of {ranks} ranks have theirs" if ranks > 1 else ""

    def durations(self, now: float) -> list[dict[str, t.Any]]:
        """Returns the phases so far, in order, each with its seconds; the last one runs until ``now`` (wall clock)."""
        entered = self._phases.entered
        ends = [begun for _name, begun in entered[1:]] + [now]
        return [{"phase": name, "seconds": round(max(0.0, end - begun), 1)} for (name, begun), end in zip(entered, ends)]


def _read_mark(text: str) -> tuple[str, str]:
    """The phase that a line begins or ends, and which of both; two empty strings where it does neither."""
    for pattern, phase, edge in _MARKS:
        if pattern.search(text):
            return phase, edge
    found = _CAPTURE.search(text)
    return (_GRAPH_PHASES[_kind(found.group("name") or "")], found.group("edge").lower()) if found else ("", "")
