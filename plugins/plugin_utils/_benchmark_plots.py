# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Benchmark records as pictures, SVG or PNG. matplotlib is an extra of the controller: without it everything else of a report still comes.

The same records give the same bytes (with the same matplotlib), so that a picture in git changes only when its numbers do.
"""

from __future__ import annotations

import functools
import io
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import subject_changes
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Range, Record, Row, number, shown

FORMS = ("svg", "png")
# Okabe and Ito's colours, which people with any colour vision tell apart: blue, vermilion, green, purple, orange.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
_INK, _MUTED, _GRID = "#1f2933", "#616e7c", "#e4e7eb"
_TITLE_LENGTH, _NOTE_LENGTH = 90, 105
_NOTES, _LABELS = 20, 11
_STYLE = {
    "svg.hashsalt": "llmops.inference",
    # Text stays text: small files, and readable in a diff.
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": _INK,
    "text.parse_math": False,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _MUTED,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": 100,
}
_Run = t.Tuple[str, t.List[Row], Record]
_Told = t.Tuple[Record, Range, str]
# Height in inches, and what draws it.
_Panel = t.Tuple[float, t.Callable[[t.Any], None]]
_LATENCIES = (("ttft_ms", "TTFT", "o"), ("tpot_ms", "TPOT", "s"), ("e2e_ms", "E2E", "^"))


class PlotError(Exception):
    """A picture cannot be drawn; the message says what to do."""


# What a library that draws may raise over numbers and fonts: a picture is never worth a record or a report.
NO_PICTURE = (PlotError, ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def run_plot(record: Record, form: str = "svg") -> bytes:
    """Returns the picture of one run: throughput and latency against the load, or the repetitions of a single point, and the inter-token latencies.

    Args:
        record: the benchmark record.
        form: one of :data:`FORMS`.

    Raises:
        PlotError: matplotlib is missing, or the record has nothing to draw.
    """
    return comparison_plot([record], form)


def comparison_plot(records: t.Sequence[Record], form: str = "svg") -> bytes:
    """Returns up to five runs in one picture, of the same kind as :func:`run_plot`.

    Raises:
        PlotError: as there.
    """
    runs = [(_run_name(record, records), view.rows(record), record) for record in records[: len(_COLOURS)]]
    drawn = [run for run in runs if any(row.rate for row in run[1])]
    if not drawn:
        raise PlotError("the record has no throughput that could be drawn")
    sweep, alone = any(len(rows) > 1 for _name, rows, _record in drawn), len(drawn) == 1
    panels: list[_Panel] = [(2.9, lambda axes: _throughput(axes, drawn))] if sweep else [(2.5, lambda axes: _repetitions(axes, drawn))]
    if not sweep:
        panels.append((0.8 + 0.42 * len(view.LATENCIES) * len(drawn), lambda axes: _percentiles(axes, drawn)))
    elif alone:
        panels.append((2.9, lambda axes: _latency(axes, drawn[0][1])))
    else:
        panels += [(2.4, functools.partial(_latency_of, runs=drawn, metric=metric, title=title)) for metric, title, _marker in _LATENCIES[:2]]
    histograms = [(name, found) for name, _rows, record in drawn for found in [view.histogram(record)] if found]
    if histograms:
        panels.append((2.5, lambda axes: _distribution(axes, histograms)))
    first = records[0]
    subject = f"{view.workload_name(first)} on {shown(first.get('host', ''))}"
    if not sweep:
        subject += f", {drawn[0][1][0].name}"
    return _draw(panels, form, subject, _subtitle(first) if alone else "")


def history_plot(records: t.Sequence[Record], form: str = "svg", metric: str = "output_tok_per_s") -> bytes:
    """Returns one host's records of one workload over time, with the commits they were measured at and what was changed.

    Args:
        records: in any order.
        form: one of :data:`FORMS`.
        metric: a rate, or a latency whose p50 is shown.

    Raises:
        PlotError: as in :func:`run_plot`.
    """
    ordered = sorted(records, key=lambda record: str(record.get("measured_at", "")))
    told = [(record, row.ranges[metric], row.status) for record in ordered for row in [view.main_row(record)] if row and metric in row.ranges]
    if not told:
        raise PlotError(f"no record has {metric}")
    first = told[0][0]
    row = view.main_row(first)
    subject = f"{view.workload_name(first)} on {shown(first.get('host', ''))}, {row.name if row else ''}"
    notes = _notes(told)
    panels: list[_Panel] = [(3.2, lambda axes: _history(axes, told, notes, _unit(metric)))]
    if notes:
        panels.append((0.3 + 0.19 * len(notes), lambda axes: _note_list(axes, notes)))
    return _draw(panels, form, subject, "")


def _draw(panels: t.Sequence[_Panel], form: str, title: str, subtitle: str) -> bytes:
    if form not in FORMS:
        raise PlotError(f"{form} is no form of a picture: {', '.join(FORMS)}")
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise PlotError(f"pictures need matplotlib on the controller, for example `pip install matplotlib` into Ansible's environment ({error})") from error
    with matplotlib.rc_context(_STYLE):
        heights = [height for height, _panel in panels]
        figure = Figure(figsize=(7.2, sum(heights) + 0.5), layout=ConstrainedLayoutEngine(h_pad=0.09))
        FigureCanvasAgg(figure)
        texts = [figure.suptitle(_cut(title, _TITLE_LENGTH), x=0.01, ha="left", fontsize=12.5, fontweight="bold")]
        if subtitle:
            texts.append(figure.supxlabel(_cut(subtitle, 110), x=0.01, ha="left", fontsize=8, color=_MUTED))
        for axes, (_height, panel) in zip(figure.subplots(len(panels), squeeze=False, height_ratios=heights).flat, panels):
            panel(axes)
        _settle(figure, texts)
        target = io.BytesIO()
        # No date and no version: they would change a picture whose numbers are the same.
        figure.savefig(target, format=form, metadata={"Date": None, "Creator": None} if form == "svg" else {"Software": None}, dpi=144)
    return target.getvalue()


def _settle(figure: t.Any, texts: t.Sequence[t.Any]) -> None:
    """Places everything once and rounds it: the solver of the layout may differ in the last digits, and names in an SVG are hashes of them."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(edge, 4) for edge in axes.get_position().bounds])
    for text in texts:
        text.set_position([round(place, 4) for place in text.get_position()])


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _run_name(record: Record, records: t.Sequence[Record]) -> str:
    hosts = {str(other.get("host")) for other in records}
    parts = [shown(record.get("host", ""))] if len(hosts) > 1 else []
    return _cut(" ".join([*parts, str(record.get("measured_at", ""))[:10], shown(view.part(record, "release").get("id", ""))]), 48)


def _subtitle(record: Record) -> str:
    engine, hardware, model, release = (view.part(record, name) for name in ("engine", "hardware", "model", "release"))
    words = [model.get("name"), f"SGLang {engine.get('version', '')}", view.gpu_words(hardware.get("gpus"))]
    return ", ".join(shown(word) for word in [*words, f"release {release.get('id', '')}", str(record.get("measured_at", ""))[:10]] if word)


def _unit(metric: str) -> str:
    return {"output_tok_per_s": "output tok/s", "total_tok_per_s": "total tok/s", "request_per_s": "requests/s"}.get(
        metric, f"{metric.partition('_')[0].upper()} p50 (ms)"
    )


def _throughput(axes: t.Any, runs: t.Sequence[_Run]) -> None:
    for colour, (name, rows, _record) in zip(_COLOURS, runs):
        _line(axes, rows, [row.rate for row in rows], {"color": colour, "marker": "o", "label": name})
    _load_axis(axes, [row for _name, rows, _record in runs for row in rows])
    axes.set_title("Throughput (median, 95 % interval)")
    axes.set_ylabel("output tok/s")
    axes.yaxis.set_major_formatter(lambda value, _place: f"{value:,g}")
    axes.set_ylim(bottom=0)
    if len(runs) > 1:
        axes.legend(loc="upper left", fontsize=8.5)


def _latency(axes: t.Any, rows: t.Sequence[Row]) -> None:
    for colour, (metric, title, marker) in zip(_COLOURS, _LATENCIES):
        values = [(place, found) for place, row in zip(_places(rows), rows) for found in [row.ranges.get(metric)] if found]
        if values:
            _line(axes, rows, [row.ranges.get(metric) for row in rows], {"color": colour, "marker": marker})
            axes.annotate(title, (values[-1][0], values[-1][1].median), xytext=(9, -3), textcoords="offset points", color=colour, fontweight="bold")
    _load_axis(axes, rows)
    axes.set_title("Latency (p50 of the requests, 95 % interval)")
    axes.set_ylabel("ms")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _place: f"{value:,g}")


def _latency_of(axes: t.Any, runs: t.Sequence[_Run], metric: str, title: str) -> None:
    for colour, (_name, rows, _record) in zip(_COLOURS, runs):
        _line(axes, rows, [row.ranges.get(metric) for row in rows], {"color": colour, "marker": "o"})
    _load_axis(axes, [row for _name, rows, _record in runs for row in rows])
    axes.set_title(f"{title} (p50 of the requests, 95 % interval)")
    axes.set_ylabel("ms")
    axes.set_ylim(bottom=0)


def _percentiles(axes: t.Any, runs: t.Sequence[_Run]) -> None:
    """The latencies of single points: each a line from p50 to p99."""
    labels: list[str] = []
    for metric in view.LATENCIES:
        for colour, (_name, rows, _record) in zip(_COLOURS, runs):
            values = rows[0].percentiles.get(metric, {})
            if len(values) < len(view.PERCENTILES):
                continue
            x, y = [values[percentile] for percentile in view.PERCENTILES], -len(labels)
            axes.plot(x, [y] * len(x), color=colour, linewidth=2.2, solid_capstyle="round")
            axes.scatter(x, [y] * len(x), s=(46, 26, 26), color=(colour, "white", "white"), edgecolors=colour, zorder=3)
            axes.annotate(" / ".join(map(number, x)), (x[-1], y), xytext=(9, -3), textcoords="offset points", fontsize=8.5, color=_MUTED)
            labels.append(metric.partition("_")[0].upper())
    axes.set_yticks([-place for place in range(len(labels))], labels)
    axes.set_ylim(0.6 - len(labels), 0.6)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.28)
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,g}")
    axes.set_title("Latency (p50 / p90 / p99 of the requests)")
    axes.set_xlabel("ms")


def _line(axes: t.Any, rows: t.Sequence[Row], values: t.Sequence[Range | None], style: t.Mapping[str, t.Any]) -> None:
    points = [(place, found) for place, found in zip(_places(rows), values) if found]
    if not points:
        return
    middles = [found.median for _place, found in points]
    errors = [[found.median - found.low for _place, found in points], [found.high - found.median for _place, found in points]]
    x = [place for place, _found in points]
    axes.errorbar(x, middles, yerr=errors, markersize=5.5, linewidth=1.6, capsize=3, **style)


def _places(rows: t.Sequence[Row]) -> list[float]:
    return [row.request_rate if row.request_rate is not None else row.concurrency or 1 for row in rows]


def _load_axis(axes: t.Any, rows: t.Sequence[Row]) -> None:
    places = sorted(set(_places(rows)))
    if len(places) > 1 and places[0] > 0 and places[-1] / places[0] >= 8:
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.set_xlabel("request rate (requests/s)" if any(row.request_rate is not None for row in rows) else "concurrency (streams)")


def _repetitions(axes: t.Any, runs: t.Sequence[_Run]) -> None:
    """A single point has no curve: its repetitions show noise and drift."""
    for colour, (name, rows, record) in zip(_COLOURS, runs):
        values = view.repetition_rates(record)
        row = next(row for row in rows if row.rate)
        axes.plot(range(1, len(values) + 1), values, "o", color=colour, markersize=6)
        if row.rate:
            axes.axhspan(row.rate.low, row.rate.high, color=colour, alpha=0.15, linewidth=0)
            axes.axhline(row.rate.median, color=colour, linewidth=1.6, label=f"{name}: {number(row.rate.median)} tok/s" if len(runs) > 1 else None)
    axes.set_title("Throughput of the repetitions (line: median, band: 95 % interval)")
    axes.set_xlabel("repetition")
    axes.set_ylabel("output tok/s")
    axes.set_xticks(range(1, 1 + max(len(view.repetition_rates(record)) for _name, _rows, record in runs)))
    axes.margins(y=0.25)
    if len(runs) > 1:
        axes.legend(fontsize=8.5)


def _distribution(axes: t.Any, histograms: t.Sequence[tuple[str, tuple[list[float], list[float]]]]) -> None:
    alone = len(histograms) == 1
    for colour, (name, (edges, counts)) in zip(_COLOURS, histograms):
        shares = [100 * count / sum(counts) for count in counts]
        axes.stairs(shares, edges, color=colour, fill=alone, alpha=0.75 if alone else 1.0, linewidth=1.6, label=name)
    axes.set_title("Time between two tokens of an answer (ITL)")
    axes.set_xlabel("ms")
    axes.set_ylabel("share (%)")
    axes.set_xlim(left=0)
    if not alone:
        axes.legend(fontsize=8.5)


def _notes(told: t.Sequence[_Told]) -> list[tuple[int, str]]:
    """What was changed, by the place of the record; of many the newest."""
    notes = []
    for place in range(1, len(told)):
        changed = [view.brief(shown(text)) for text in subject_changes(told[place - 1][0], told[place][0])]
        if changed:
            record = told[place][0]
            notes.append((place, _cut(f"{' '.join(_label(record).split())}:  {';  '.join(changed)}", _NOTE_LENGTH)))
    return notes[-_NOTES:]


def _history(axes: t.Any, told: t.Sequence[_Told], notes: t.Sequence[tuple[int, str]], unit: str) -> None:
    good = [(place, found.median) for place, (_record, found, status) in enumerate(told) if status == "ok"]
    axes.plot([place for place, _value in good], [value for _place, value in good], color=_COLOURS[0], linewidth=1.4, alpha=0.5, zorder=1)
    for place, (_record, found, status) in enumerate(told):
        error = [[found.median - found.low], [found.high - found.median]]
        colour, marker = (_COLOURS[0], "o") if status == "ok" else (_COLOURS[1], "X")
        axes.errorbar([place], [found.median], yerr=error, color=colour, marker=marker, markersize=6.5, capsize=3)
        if status != "ok":
            axes.annotate(status, (place, found.low), xytext=(0, -14), textcoords="offset points", ha="center", fontsize=8, color=colour)
    for mark, (place, _text) in enumerate(notes, 1):
        circle = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": _MUTED, "linewidth": 0.8}
        axes.annotate(str(mark), (place, told[place][1].high), xytext=(0, 11), textcoords="offset points", ha="center", fontsize=8, bbox=circle)
    # More labels than fit would be none.
    every = -(-len(told) // _LABELS)
    places = range((len(told) - 1) % every, len(told), every)
    axes.set_xticks(places, [_label(told[place][0]) for place in places], fontsize=8)
    axes.set_ylabel(unit)
    axes.set_title("Median and 95 % interval; numbers: what was changed since the record before")
    axes.margins(x=0.04, y=0.18)


def _note_list(axes: t.Any, notes: t.Sequence[tuple[int, str]]) -> None:
    axes.axis("off")
    for mark, (_place, text) in enumerate(notes, 1):
        axes.annotate(f"{mark:>2}  {text}", (0, 1), xytext=(0, -14 * mark), xycoords="axes fraction", textcoords="offset points", fontsize=8.5)


def _label(record: Record) -> str:
    commit = str(view.part(record, "inventory").get("commit") or "")[:7]
    return "\n".join(part for part in (str(record.get("measured_at", ""))[5:10], commit) if part)
