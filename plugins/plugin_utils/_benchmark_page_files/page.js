// Copyright (c) 2026 the llmops.inference authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Shows the data that the page holds. Whatever a record says becomes a text node or the value of a harmless attribute, never markup. No statistics here.
// The part of the address after # is the whole state, so that a view can be sent as a link:
//   #series=ct129|decode&load=1 stream&metric=ttft_ms&compare=ID,ID&sort=tok&dir=up&find=WORDS&to=compare&theme=dark
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const records = data.records;
  const SVG = "http://www.w3.org/2000/svg";
  const METRICS = {
    output_tok_per_s: ["Output tokens per second", "tok/s"],
    total_tok_per_s: ["Tokens per second, in and out", "tok/s"],
    request_per_s: ["Requests per second", "req/s"],
    ttft_ms: ["Time to first token (TTFT), p50", "ms"],
    tpot_ms: ["Time per output token (TPOT), p50", "ms"],
    e2e_ms: ["Whole request (E2E), p50", "ms"],
  };
  const RATE = "output_tok_per_s";

  // --- small things

  const at = (id) => document.getElementById(id);

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "on") for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "").map((child) => (child.nodeType ? child : String(child))));
    return node;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  function number(value) {
    if (value === null || value === undefined) return "-";
    const size = Math.abs(value);
    const digits = size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 || size === 0 ? 2 : 3;
    return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }
  const span = (range) => (range ? `${number(range[1])} to ${number(range[2])}` : "");
  const day = (record) => record.date.slice(0, 10);
  const minute = (record) => record.date.slice(0, 16).replace("T", " ");
  const mainRow = (record) => (record.main === null ? null : record.rows[record.main]);
  const rowOf = (record, name) => record.rows.find((row) => row.name === name) || null;
  const rangeOf = (record, metric, load) => { const row = load ? rowOf(record, load) : mainRow(record); return (row && row.ranges[metric]) || null; };
  const seriesOf = (record) => `${record.host}|${record.workload}`;
  const named = (key) => key.replace("|", ", ");

  function chip(word, title) {
    const marks = { faster: "\u25b2 ", slower: "\u25bc ", "no measurable difference": "= " };
    const kind = word === "flattering" ? "label" : ["faster", "slower", "failed", "contended"].includes(word) ? word : word === "no verdict" ? "none" : "same";
    return el("span", { class: `chip ${kind}`, title }, `${marks[word] || ""}${word}`);
  }

  const ratio = (verdict) => (!verdict || verdict.low === null || verdict.low === undefined ? "" : `${verdict.ratio.toFixed(2)} (${verdict.low.toFixed(2)} to ${verdict.high.toFixed(2)})`);

  function verdictWords(verdict) {
    return verdict ? [chip(verdict.verdict, verdict.reason), ratio(verdict) ? [" ", el("span", { class: "range" }, ratio(verdict))] : ""] : "";
  }

  // --- state

  function state() {
    const told = new URLSearchParams(location.hash.slice(1));
    const series = [...new Set(records.map(seriesOf))];
    const newest = records[records.length - 1];
    const wanted = told.get("series");
    const chosen = series.includes(wanted) ? wanted : newest ? seriesOf(newest) : "";
    const known = new Map(records.map((record, place) => [record.id, place]));
    let pair = (told.get("compare") || "").split(",").map((id) => known.get(id));
    if (pair.length !== 2 || pair.includes(undefined)) pair = standardPair(chosen);
    return {
      series: chosen, all: series, pair,
      load: told.get("load") || "",
      metric: METRICS[told.get("metric")] ? told.get("metric") : RATE,
      sort: told.get("sort") || "date", down: (told.get("dir") || "down") !== "up",
      find: told.get("find") || "", to: told.get("to") || "", theme: told.get("theme") || "",
    };
  }

  // The newest of the series and what it is held against: the record before it that counts.
  function standardPair(key) {
    const own = records.map((record, place) => place).filter((place) => seriesOf(records[place]) === key);
    if (!own.length) return [];
    const last = own[own.length - 1];
    const before = records[last].before;
    return [before === null ? own[0] : before, last];
  }

  function link(changes) {
    const told = new URLSearchParams(location.hash.slice(1));
    for (const [name, value] of Object.entries(changes)) value === "" ? told.delete(name) : told.set(name, value);
    return `#${told.toString()}`;
  }
  const go = (changes) => { location.hash = link(changes); };

  // --- charts

  function ticks(low, high, count) {
    const rough = (high - low) / Math.max(count, 1) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((part) => part * power).find((size) => size >= rough);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Number(value.toPrecision(10)));
    return found;
  }

  // series: [{kind: "a" | "b", points: [{x, y, low, high, off, mark, title}]}]; labels: [[x, text, text]...]; log: of x; zero: whether y begins at 0.
  function chart(box, title, series, options) {
    const width = Math.max(260, Math.min(box.clientWidth || 700, 1140)), height = options.height || 240;
    const left = 52, right = 16, top = 26, bottom = options.labels.some((label) => label[2]) ? 44 : options.under ? 42 : 28;
    const points = series.flatMap((one) => one.points);
    const xs = points.map((point) => point.x);
    const place = options.log ? Math.log : (value) => value;
    let [x0, x1] = [place(Math.min(...xs)), place(Math.max(...xs))];
    const margin = x1 > x0 ? (x1 - x0) * 0.04 : 1;
    [x0, x1] = [x0 - margin, x1 + margin];
    let y0 = Math.min(...points.map((point) => point.low)), y1 = Math.max(...points.map((point) => point.high));
    const room = (y1 - y0) * 0.14 || Math.abs(y1) * 0.05 || 1;
    [y0, y1] = [options.zero ? 0 : Math.max(0, y0 - room), y1 + room];
    const x = (value) => left + ((place(value) - x0) / (x1 - x0)) * (width - left - right);
    const y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
    const parts = [];
    for (const value of ticks(y0, y1, 5)) {
      parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, value.toLocaleString("en-GB")));
    }
    parts.push(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
    parts.push(svg("text", { x: left - 44, y: 13 }, options.unit));
    const every = Math.max(1, Math.ceil((options.labels.length * (options.wide || 34)) / (width - left - right)));
    options.labels.forEach(([value, ...lines], number_) => {
      if ((options.labels.length - 1 - number_) % every) return;
      lines.forEach((line, row) => parts.push(svg("text", { x: x(value), y: height - bottom + 16 + 14 * row, "text-anchor": "middle" }, line)));
    });
    if (options.under) parts.push(svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, options.under));
    for (const one of series) {
      const good = one.points.filter((point) => !point.off);
      if (good.length > 1) parts.push(svg("polyline", { class: `line ${one.kind}`, points: good.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") }));
      for (const point of one.points) {
        const kind = point.off ? "off" : one.kind;
        const px = x(point.x);
        parts.push(svg("line", { class: kind, x1: px, x2: px, y1: y(point.low), y2: y(point.high) }));
        for (const edge of [point.low, point.high]) parts.push(svg("line", { class: kind, x1: px - 4, x2: px + 4, y1: y(edge), y2: y(edge) }));
        const shape = point.off
          ? svg("path", { class: kind, d: `M${px - 4},${y(point.y) - 4}l8,8m0,-8l-8,8`, "stroke-width": 2 }, svg("title", {}, point.title))
          : svg("circle", { class: `${kind} dot`, cx: px, cy: y(point.y), r: 4.5 }, svg("title", {}, point.title));
        parts.push(shape);
        if (point.mark) {
          parts.push(svg("circle", { class: "ring", cx: px, cy: y(point.high) - 14, r: 8 }));
          parts.push(svg("text", { class: "mark", x: px, y: y(point.high) - 10.3, "text-anchor": "middle" }, point.mark));
        }
      }
    }
    box.append(options.silent ? "" : el("h3", {}, title), svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, parts));
  }

  function histogram(box, chosen) {
    const told = chosen.map((record, number_) => [record.histogram, number_ ? "b" : "a"]).filter(([found]) => found);
    if (!told.length) return;
    const width = Math.max(260, Math.min(box.clientWidth || 340, 1140)), height = 240, left = 52, right = 16, top = 26, bottom = 42;
    const shares = told.map(([found]) => { const all = found.counts.reduce((sum, count) => sum + count, 0); return found.counts.map((count) => (100 * count) / all); });
    const x1 = Math.max(...told.map(([found]) => found.edges[found.edges.length - 1])), y1 = Math.max(...shares.flat()) * 1.08;
    const x = (value) => left + (value / x1) * (width - left - right), y = (value) => height - bottom - (value / y1) * (height - top - bottom);
    const parts = [];
    for (const value of ticks(0, y1, 4)) {
      parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, `${value}`));
    }
    for (const value of ticks(0, x1, width > 500 ? 8 : 4)) parts.push(svg("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" }, value.toLocaleString("en-GB")));
    told.forEach(([found, kind], number_) => {
      shares[number_].forEach((share, bin) => {
        if (share > 0) parts.push(svg("rect", { class: `${kind} bar`, x: x(found.edges[bin]), y: y(share), width: Math.max(0.5, x(found.edges[bin + 1]) - x(found.edges[bin])), height: y(0) - y(share) },
          svg("title", {}, `${number(found.edges[bin])} to ${number(found.edges[bin + 1])} ms: ${share.toFixed(1)} %`)));
      });
      const steps = shares[number_].map((share, bin) => `H${x(found.edges[bin])}V${y(share)}H${x(found.edges[bin + 1])}`).join("");
      parts.push(svg("path", { class: `${kind} line`, d: `M${x(found.edges[0])},${y(0)}${steps}V${y(0)}` }));
    });
    parts.push(svg("line", { class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0) }));
    parts.push(svg("text", { x: left - 44, y: 13 }, "% of the tokens"), svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "ms"));
    const title = "Time between two tokens of an answer (ITL)";
    box.append(el("h3", {}, title), svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, parts));
  }

  function sparkline(own) {
    const good = own.filter((record) => record.status === "ok" && rangeOf(record, RATE)).slice(-12).map((record) => rangeOf(record, RATE)[0]);
    if (good.length < 2) return "";
    const width = 230, height = 34;
    let low = Math.min(...good), high = Math.max(...good);
    // Noise is not to look like news.
    const least = 0.1 * high;
    if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
    const at_ = good.map((value, place) => [3 + (place / (good.length - 1)) * (width - 8), height - 5 - ((value - low) / (high - low || 1)) * (height - 11)]);
    const last = at_[at_.length - 1];
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      svg("polyline", { class: "line a", points: at_.map((point) => point.join(",")).join(" ") }), svg("circle", { class: "a", cx: last[0], cy: last[1], r: 3 }));
  }

  // --- sections

  function overview(now) {
    const cards = now.all.map((key) => {
      const own = records.filter((record) => seriesOf(record) === key);
      const last = own[own.length - 1];
      return [last.date, el("div", { class: "card" }, cardParts(key, own, last))];
    });
    cards.sort((one, other) => (one[0] < other[0] ? 1 : -1));
    at("cards").replaceChildren(...cards.map(([, card]) => card));
    const hosts = new Set(records.map((record) => record.host)).size;
    at("summary").textContent = records.length
      ? `${records.length} record${records.length === 1 ? "" : "s"} of ${hosts} server${hosts === 1 ? "" : "s"}, ${day(records[0])} to ${day(records[records.length - 1])}`
      : "There is no record yet.";
  }

  function cardParts(key, own, last) {
    const row = mainRow(last), range = rangeOf(last, RATE), verdict = last.against_baseline || last.verdict;
    const best = last.rows.filter((one) => one.ranges[RATE]).sort((one, other) => other.ranges[RATE][0] - one.ranges[RATE][0])[0];
    return [
      el("div", { class: "title" }, el("a", { href: link({ series: key, load: "", compare: "", to: "history" }) }, named(key)), last.status === "ok" ? "" : chip(last.status)),
      el("div", { class: "value" }, range ? number(range[0]) : "-", " ", el("small", {}, `tok/s${range ? `, ${span(range)}` : ""}`)),
      el("div", { class: "muted" }, row ? row.name : "", best && best !== row ? `, ${number(best.ranges[RATE][0])} tok/s at ${best.name}` : ""),
      verdict && last.status === "ok" ? el("div", {}, verdictWords(verdict), el("span", { class: "range" }, last.against_baseline ? " against the baseline" : " against the record before")) : "",
      last.baseline ? el("div", { class: "range" }, "part of the baseline") : "",
      last.label ? el("div", {}, chip("flattering", last.label)) : "",
      el("div", { class: "range" }, `${day(last)}, release ${last.release}, SGLang ${last.version}`),
      sparkline(own),
    ];
  }

  function options(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  }

  function history(now) {
    options(at("series"), now.all.map((key) => [key, named(key)]).sort((one, other) => (one[1] < other[1] ? -1 : 1)), now.series);
    options(at("metric"), Object.entries(METRICS).map(([name, [title]]) => [name, title]), now.metric);
    const own = records.filter((record) => seriesOf(record) === now.series);
    const loads = [...own].reverse().flatMap((record) => record.rows.map((row) => row.name)).filter((name, place, all) => all.indexOf(name) === place);
    const standing = own.length ? mainRow(own[own.length - 1]) : null;
    const load = loads.includes(now.load) ? now.load : standing ? standing.name : loads[0] || "";
    options(at("load"), loads.map((name) => [name, name]), load);
    const marks = new Map();
    own.forEach((record) => { if (record.changed && record.changed.length) marks.set(record, marks.size + 1); });
    const shown = own.map((record, place) => [record, place, rangeOf(record, now.metric, load)]).filter(([, , range]) => range);
    const box = at("history-chart");
    box.replaceChildren();
    if (shown.length) {
      chart(box, `${METRICS[now.metric][0]}, ${load}: median and 95 % interval`, [{
        kind: "a",
        points: shown.map(([record, place, range]) => ({
          x: place, y: range[0], low: range[1], high: range[2], off: record.status !== "ok", mark: marks.get(record),
          title: `${minute(record)}: ${number(range[0])} (${span(range)})${record.status === "ok" ? "" : `, ${record.status}`}${record.changed.length ? `\n${record.changed.join("\n")}` : ""}`,
        })),
      }], { unit: METRICS[now.metric][1], labels: shown.map(([record, place]) => [place, record.date.slice(5, 10), record.commit]), wide: 62, height: 280 });
    } else box.append(el("p", { class: "muted" }, "No record of this series has this metric."));
    at("history-table").replaceChildren(
      el("thead", {}, el("tr", {}, ["Measured", "", "Changed since the record before", "Commit", METRICS[now.metric][1], "95 % interval", "Against the record before", "Release", "SGLang"].map((title, place) => el("th", { class: [4, 5].includes(place) ? "number" : null }, title)))),
      el("tbody", {}, [...own].reverse().map((record) => historyRow(record, rangeOf(record, now.metric, load), marks.get(record)))));
  }

  function historyRow(record, range, mark) {
    const place = records.indexOf(record);
    const pair = record.before === null ? "" : el("a", { href: link({ compare: `${records[record.before].id},${record.id}`, to: "compare" }) }, "compare");
    return el("tr", {},
      el("td", {}, minute(record)),
      el("td", {}, mark || ""),
      el("td", { class: "wide" }, record.changed.length ? record.changed.map((text) => el("div", {}, text)) : el("span", { class: "muted" }, place && record.before !== null ? "nothing" : "first record")),
      el("td", { class: "wide" }, commitWords(record)),
      el("td", { class: "number" }, range ? number(range[0]) : "-"),
      el("td", { class: "number range" }, span(range)),
      el("td", { class: "wide" }, record.status === "ok" ? verdictWords(record.verdict) : chip(record.status, record.remarks[0]), " ", pair),
      el("td", {}, record.release, record.baseline ? el("small", {}, " baseline") : ""),
      el("td", {}, record.version));
  }

  // The message belongs to the commit that the record names; the others lie between it and the commit of the record before.
  function commitWords(record) {
    const others = record.others.map(([id, date, text]) => el("li", {}, el("small", {}, `${id} ${date} `), text));
    if (record.left_out) others.push(el("li", {}, `and ${record.left_out} more`));
    const count = record.others.length + record.left_out;
    return [
      record.commit, record.dirty ? el("small", {}, " and changes that were not committed") : "",
      record.message === null ? el("div", { class: "range" }, "git does not know it where this page was made") : record.message ? el("div", {}, record.message) : "",
      count ? el("details", {}, el("summary", {}, `${count} other commit${count === 1 ? "" : "s"} since the record before`), el("ul", {}, others)) : "",
      record.apart ? el("div", { class: "range" }, record.apart) : "",
    ];
  }

  function choose(select, chosen, side) {
    const groups = new Map();
    records.forEach((record, place) => { const key = seriesOf(record); groups.set(key, [...(groups.get(key) || []), [record, place]]); });
    select.replaceChildren(...[...groups].map(([key, own]) => el("optgroup", { label: named(key) }, [...own].reverse().map(([record, place]) => {
      const range = rangeOf(record, RATE);
      return el("option", { value: record.id, selected: place === chosen }, `${minute(record)}  ${range ? `${number(range[0])} tok/s` : record.status}  ${record.release}  ${named(key)}`);
    }))));
    select.onchange = () => { const pair = state().pair.map((place) => records[place].id); pair[side] = select.value; go({ compare: pair.join(","), to: "" }); };
  }

  function comparison(now) {
    const box = at("comparison");
    box.replaceChildren();
    if (now.pair.length !== 2) return;
    choose(at("first"), now.pair[0], 0);
    choose(at("second"), now.pair[1], 1);
    const [first, second] = now.pair.map((place) => records[place]);
    const pair = data.pairs[now.pair.join(",")] || null;
    const differing = pair ? pair.differs : conditionsThatDiffer(first, second);
    box.append(el("p", { class: "verdict" }, sentence(first, second, pair, differing)));
    if (pair && pair.reason) box.append(el("p", { class: "muted" }, pair.reason));
    if (differing.length) {
      box.append(el("h3", {}, pair && pair.verdict === "not comparable" ? "Conditions that differ, so the numbers say nothing of a change" : "Conditions that differ"));
      box.append(el("div", { class: "scroll wrap" }, el("table", {}, head(["Condition", "Baseline", "Now"]), el("tbody", {}, differing.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))))))));
    }
    if (pair) box.append(el("h3", {}, pair.changed.length ? "Changed on purpose" : "Nothing was changed on purpose"), el("ul", {}, pair.changed.map((text) => el("li", {}, text))));
    const sweep = loadsOf(first, second).length > 1;
    box.append(el("h3", {}, sweep ? "Numbers" : `Numbers, ${loadsOf(first, second)[0] || "none"}`), el("div", { class: "scroll" }, sweep ? sweepTable(first, second, pair) : numbersTable(first, second, pair)));
    if (sweep) box.append(el("details", {}, el("summary", {}, "All percentiles, goodput, acceptance and spread"), el("div", { class: "scroll" }, numbersTable(first, second, null))));
    const remarks = [...new Set([...second.remarks, ...first.remarks])].map((text) => {
      const side = !first.remarks.includes(text) ? "Now" : !second.remarks.includes(text) ? "Baseline" : "Both";
      return el("li", {}, el("b", {}, `${side}: `), text);
    });
    if (remarks.length) box.append(el("h3", {}, "Remarks"), el("ul", {}, remarks));
    const charts = el("div", { class: "charts" });
    box.append(charts);
    pairCharts(charts, first, second);
    box.append(el("details", {}, el("summary", {}, "All conditions of both"), el("div", { class: "scroll wrap" }, conditionsTable(first, second))));
  }

  const head = (titles, numbers) => el("thead", {}, el("tr", {}, titles.map((title, place) => el("th", { class: numbers && place ? "number" : null }, title))));

  function sentence(first, second, pair, differing) {
    if (first === second) return "This is one record on both sides.";
    if (!pair) return ["No verdict for these two: ", first.workload !== second.workload ? "their workloads differ." : first.host !== second.host ? "they are of two servers." : first.date > second.date ? "the baseline is the newer one." : "only the newest records of a server are held against each other here."];
    if (pair.verdict === "not comparable") return [chip(pair.verdict), differing.length ? ` ${differing.map(([name]) => name).join(", ")} differ${differing.length === 1 ? "s" : ""}` : ""];
    const [before, after] = [rangeOf(first, RATE), rangeOf(second, RATE)];
    const points = Object.entries(pair.points);
    const deciding = points.length > 1 ? points.find(([, one]) => one.verdict === pair.verdict && one.ratio === pair.ratio) : null;
    const told = deciding ? [`at ${deciding[0]}`] : before && after ? [`${number(after[0])} against ${number(before[0])} tok/s`] : [];
    return [chip(pair.verdict), " ", told, ratio(pair) ? `, ratio ${ratio(pair)}` : ""];
  }

  // Of two records that were not held against each other: what their conditions say otherwise, in the groups that make conditions.
  function conditionsThatDiffer(first, second) {
    const groups = ["Model", "Workload", "Client", "Hardware", "Engine", "Requested flags", "Environment"];
    const told = [first, second].map((record) => new Map(record.facts.map((place) => data.facts[place]).filter(([group]) => groups.includes(group)).map(([group, name, value]) => [`${group}: ${name}`, value])));
    return [...new Set([...told[0].keys(), ...told[1].keys()])].filter((name) => told[0].get(name) !== told[1].get(name)).map((name) => [name, told[0].get(name) || "-", told[1].get(name) || "-"]);
  }

  const loadsOf = (first, second) => [...new Set([...first.rows, ...second.rows].map((row) => row.name))];
  const valueCell = (range) => el("td", { class: "number" }, range ? [number(range[0]), el("div", { class: "range" }, span(range))] : "-");

  // A sweep: one line for each load.
  function sweepTable(first, second, pair) {
    const metrics = [[RATE, "tok/s"], ["ttft_ms", "TTFT ms p50"], ["tpot_ms", "TPOT ms p50"], ["e2e_ms", "E2E ms p50"]];
    const titles = metrics.flatMap(([metric, title]) => [`${title}, baseline`, `${title}, now`, ...(metric === RATE ? ["Ratio"] : [])]);
    return el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Load"), titles.map((title) => el("th", { class: title === "Ratio" ? null : "number" }, title)))),
      el("tbody", {}, loadsOf(first, second).map((name) => el("tr", {}, el("td", {}, el("b", {}, name)), metrics.map(([metric]) => [
        [first, second].map((record) => { const row = rowOf(record, name); return valueCell(row && row.ranges[metric]); }),
        metric === RATE ? el("td", {}, pair && pair.points[name] ? verdictWords(pair.points[name]) : "") : "",
      ])))));
  }

  // Everything of each load, one line for each number.
  function numbersTable(first, second, pair) {
    const read = [
      ["tok/s", (row) => row.ranges[RATE] && [number(row.ranges[RATE][0]), span(row.ranges[RATE])]],
      ...["ttft", "tpot", "itl", "e2e"].map((name) => [`${name.toUpperCase()} ms, p50 / p90 / p99`, (row) => row.percentiles[`${name}_ms`] && [row.percentiles[`${name}_ms`].map(number).join(" / ")]]),
      ["Requests/s within the SLO", (row) => row.goodput !== null && [number(row.goodput)]],
      ["Acceptance length", (row) => row.acceptance !== null && [number(row.acceptance)]],
      ["Cache hits", (row) => row.hits !== null && [`${(100 * row.hits).toFixed(0)} %`]],
      ["Spread", (row) => row.spread !== null && [`${row.spread.toFixed(1)} %`]],
      ["Repetitions", (row) => [`${row.repetitions}${row.starts > 1 ? ` in ${row.starts} starts` : ""}`]],
    ];
    const several = loadsOf(first, second).length > 1;
    const lines = loadsOf(first, second).flatMap((name) => {
      const sides = [first, second].map((record) => rowOf(record, name));
      const told = read.map(([title, of]) => [title, sides.map((row) => (row ? of(row) : null))]).filter(([, values]) => values.some(Boolean));
      return told.map(([title, values], line) => el("tr", {}, several ? el("td", {}, line ? "" : el("b", {}, name)) : "", el("td", {}, title),
        values.map((one) => el("td", { class: "number" }, one ? [one[0], one[1] ? el("div", { class: "range" }, one[1]) : ""] : "-")),
        several ? "" : el("td", {}, line || !pair || !pair.points[name] ? "" : verdictWords(pair.points[name]))));
    });
    const titles = [...(several ? ["Load"] : []), "", "Baseline", "Now", ...(several ? [] : ["Ratio"])];
    return el("table", {}, el("thead", {}, el("tr", {}, titles.map((title) => el("th", { class: ["Baseline", "Now"].includes(title) ? "number" : null }, title)))), el("tbody", {}, lines));
  }

  function pairCharts(box, first, second) {
    const chosen = first === second ? [first] : [first, second];
    const drawings = [];
    const loads = [...new Set(chosen.flatMap((record) => record.rows.map((row) => row.load)))].filter((load) => load !== null).sort((one, other) => one - other);
    const rated = chosen.some((record) => record.rows.some((row) => row.rated));
    for (const metric of loads.length > 1 ? [RATE, "ttft_ms", "tpot_ms"] : []) {
      const series = chosen.map((record, side) => ({
        kind: side ? "b" : "a",
        points: record.rows.filter((row) => row.ranges[metric] && row.load !== null).map((row) => {
          const [y, low, high] = row.ranges[metric];
          return { x: row.load, y, low, high, off: row.status !== "ok", title: `${row.name}: ${number(y)} (${span(row.ranges[metric])})` };
        }),
      })).filter((one) => one.points.length);
      const options_ = { unit: METRICS[metric][1], labels: loads.map((load) => [load, String(load)]), log: loads[0] > 0, zero: true, under: rated ? "requests per second" : "concurrency (streams)" };
      if (series.length) drawings.push((part) => chart(part, METRICS[metric][0], series, options_));
    }
    if (chosen.some((record) => record.histogram)) drawings.push((part) => histogram(part, chosen));
    // All boxes first: a drawing is as wide as its box, and that depends on how many there are.
    const parts = drawings.map(() => el("div", { class: "chart" }));
    box.append(...parts);
    drawings.forEach((draw, place) => draw(parts[place]));
  }

  function conditionsTable(first, second) {
    const told = [first, second].map((record) => new Map(record.facts.map((place) => data.facts[place]).map(([group, name, value]) => [`${group}\n${name}`, value])));
    return el("table", {}, head(["", "Condition", "Baseline", "Now"]), el("tbody", {}, [...new Set([...told[0].keys(), ...told[1].keys()])].map((key) => {
      const values = told.map((one) => one.get(key));
      return el("tr", { class: values[0] === values[1] ? null : "differs" }, key.split("\n").map((text) => el("td", {}, text)), values.map((value) => el("td", {}, value === undefined ? "-" : value)));
    })));
  }

  const best = (record) => Math.max(...record.rows.map((row) => (row.ranges[RATE] ? row.ranges[RATE][0] : -Infinity)));
  const value = (record, metric) => { const range = rangeOf(record, metric); return range ? range[0] : null; };
  const COLUMNS = [
    ["date", "Measured", minute, (record) => record.date],
    ["host", "Server", (record) => record.host, (record) => record.host],
    ["workload", "Workload", (record) => [record.workload, record.label ? [" ", chip("flattering", record.label)] : ""], (record) => record.workload],
    ["load", "Load", (record) => (record.rows.length > 1 ? `${record.rows.length} points` : mainRow(record) ? mainRow(record).name : "-"), (record) => record.rows.length],
    ["tok", "tok/s", (record) => cell(record, RATE), (record) => value(record, RATE), true],
    ["best", "Best tok/s", (record) => (record.rows.length > 1 && Number.isFinite(best(record)) ? number(best(record)) : ""), (record) => (Number.isFinite(best(record)) ? best(record) : null), true],
    ["ttft", "TTFT ms", (record) => number(value(record, "ttft_ms")), (record) => value(record, "ttft_ms"), true],
    ["tpot", "TPOT ms", (record) => number(value(record, "tpot_ms")), (record) => value(record, "tpot_ms"), true],
    ["e2e", "E2E ms", (record) => number(value(record, "e2e_ms")), (record) => value(record, "e2e_ms"), true],
    ["spread", "Spread", (record) => (mainRow(record) && mainRow(record).spread !== null ? `${mainRow(record).spread.toFixed(1)} %` : ""), (record) => (mainRow(record) ? mainRow(record).spread : null), true],
    ["verdict", "Against the record before", (record) => (record.status === "ok" ? verdictWords(record.verdict) : chip(record.status, record.remarks[0])), (record) => (record.status !== "ok" ? record.status : record.verdict ? record.verdict.verdict : "")],
    ["release", "Release", (record) => [record.release, record.baseline ? el("small", {}, " baseline") : ""], (record) => record.release],
    ["engine", "SGLang", (record) => record.version, (record) => record.version],
    ["model", "Model", (record) => record.model, (record) => record.model],
  ];

  function cell(record, metric) {
    const range = rangeOf(record, metric);
    return range ? [number(range[0]), el("div", { class: "range" }, span(range))] : "-";
  }

  function matches(record, words) {
    const text = [record.id, record.host, record.workload, record.model, record.version, record.status, record.label, record.message || "", ...record.facts.map((place) => data.facts[place].slice(1).join(" "))].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function table(now) {
    const column = COLUMNS.find(([key]) => key === now.sort) || COLUMNS[0];
    const words = now.find.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = records.filter((record) => matches(record, words)).map((record) => [column[3](record), record]);
    // What has no value comes last either way.
    const empty = (one) => one === null || one === undefined || one === "";
    shown.sort(([one, first], [other, second]) => {
      if (empty(one) !== empty(other)) return empty(one) ? 1 : -1;
      const order = empty(one) || one === other ? (first.date < second.date ? -1 : 1) : one < other ? -1 : 1;
      return now.down ? -order : order;
    });
    at("table").replaceChildren(
      el("thead", {}, el("tr", {}, COLUMNS.map(([key, title, , , right]) => {
        const on = key === column[0];
        const action = () => go({ sort: key, dir: on && now.down ? "up" : "down", to: "" });
        return el("th", { class: right ? "number" : null, "aria-sort": on ? (now.down ? "descending" : "ascending") : null }, el("button", { type: "button", on: { click: action } }, `${title}${on ? (now.down ? " \u25be" : " \u25b4") : ""}`));
      }))),
      el("tbody", {}, shown.map(([, record]) => el("tr", { class: now.pair.includes(records.indexOf(record)) ? "chosen" : null, "data-id": record.id }, COLUMNS.map(([, , read, , right]) => el("td", { class: right ? "number" : null }, read(record)))))));
    at("found").textContent = words.length ? `${shown.length} of ${records.length}` : "";
    if (at("find").value !== now.find) at("find").value = now.find;
    at("skipped").replaceChildren(...(data.skipped.length ? [el("h3", {}, "Files that are no records, and were left out"), el("ul", {}, data.skipped.map((text) => el("li", {}, text)))] : []));
  }

  // --- all together

  function render() {
    const now = state();
    now.theme ? document.documentElement.setAttribute("data-theme", now.theme === "dark" ? "dark" : "light") : document.documentElement.removeAttribute("data-theme");
    overview(now);
    history(now);
    comparison(now);
    table(now);
    document.querySelectorAll("nav a").forEach((one) => one.setAttribute("href", link({ to: one.dataset.to })));
    const target = ["overview", "history", "compare", "all"].includes(now.to) && at(now.to);
    if (target) target.scrollIntoView();
    document.documentElement.setAttribute("data-ready", "yes");
  }

  at("series").onchange = (event) => go({ series: event.target.value, load: "", compare: "", to: "" });
  at("load").onchange = (event) => go({ load: event.target.value, to: "" });
  at("metric").onchange = (event) => go({ metric: event.target.value, to: "" });
  at("find").oninput = (event) => go({ find: event.target.value, to: "" });
  window.addEventListener("hashchange", render);
  let width = window.innerWidth, waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(render, 150);
  });
  render();
})();
