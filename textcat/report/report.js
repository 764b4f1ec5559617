
// Draw the plots, topics and documents of a report.
const at = [];  // by topic, the index of the threshold at the slider
const f3 = (value) => (value === null || !isFinite(value) ? "–" : value.toFixed(3));
const signed = (value) => (value > 0 ? "+" : "") + value;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const f1 = (hits, given, n) => (n ? (2 * hits) / (given + n) : NaN);

// --- plots of the report --------------------------------------------------------------------------------------------
const UNIT = [0, 0.25, 0.5, 0.75, 1];

function reliability(bins, label) {
  return plot({label: label + bins.map(([p, q, n]) => ` at ${f3(p)} ${f3(q)} of ${n}`).join(","), x: [0, 1], y: [0, 1],
    xTicks: UNIT, yTicks: UNIT, xTitle: "predicted probability", yTitle: "fraction of positives"}, (X, Y) => [
    s("path", {class: "even", d: path([[X(0), Y(0)], [X(1), Y(1)]])}),
    s("path", {class: "line l0", d: path(bins.map(([p, q]) => [X(p), Y(q)]))}),
    bins.map(([p, q, n]) => s("circle", {class: "dot", cx: X(p), cy: Y(q), r: 2 + Math.log10(n)},
      s("title", {}, `${n} documents: ${f3(p)} predicted, ${f3(q)} positive`)))]);
}

function bySize(chosen) {
  const known = D.topics.map((t, j) => [Math.log10(Math.max(t.train, 1)), t.ap, j]).filter((p) => p[1] !== null);
  const top = Math.max(1, Math.ceil(Math.max(...known.map((p) => p[0]), 0)));
  const ticks = Array.from({length: top + 1}, (_, k) => [k, k < 3 ? 10 ** k : k < 6 ? 10 ** (k - 3) + "k" : 10 ** (k - 6) + "M"]);
  const dot = ([x, ap, j], X, Y) => s("circle", {class: j === chosen ? "dot here" : "dot faint", cx: X(x), cy: Y(ap),
    r: j === chosen ? 6 : 3.5, onclick: () => { location.hash = "topic-" + j; }},
    s("title", {}, `${D.labels[j]}: ${D.topics[j].train} training documents, AP ${f3(ap)}`));
  const what = chosen === undefined ? `${known.length} topics` : D.labels[chosen] + " among all topics";
  return plot({label: `Average precision against training documents: ${what}; the table has the figures`,
    x: [0, top], y: [0, 1], xTicks: ticks, yTicks: UNIT, xTitle: "training documents", yTitle: "average precision"},
    (X, Y) => [known.filter((p) => p[2] !== chosen).map((p) => dot(p, X, Y)),
      known.filter((p) => p[2] === chosen).map((p) => dot(p, X, Y))]);
}

function overview() {
  const bands = Object.entries(D.bands);
  const lines = plot({label: "Precision at recall 0, .5 and 1, averaged over topics: " +
    bands.map(([name, c]) => `${name} ${f3(c[0])}, ${f3(c[50])}, ${f3(c[100])}`).join("; "), x: [0, 1], y: [0, 1],
    xTicks: UNIT, yTicks: UNIT, xTitle: "recall", yTitle: "precision"}, (X, Y) => bands.map(([, c], k) =>
    s("path", {class: `line l${k % 6}`, d: path(c.map((p, i) => [X(i / 100), Y(p)]))})));
  $("plots").append(
    figure("Precision and recall by band", lines, key(bands.map(([name], k) => [`l${k % 6}`, name]))),
    figure("Average precision and training size", bySize()));
  if (D.calibration) $("plots").append(figure("Calibration, all topics", reliability(D.calibration, "Calibration:")));
  if (D.forecast) $("plots").append(learningCurve(D.forecast));
}

// --- one topic ----------------------------------------------------------------------------------------------------
function best(t) {
  const [, retrieved, hits] = t.cuts, values = hits.map((n, k) => f1(n, retrieved[k], t.n) || 0);
  return values.indexOf(Math.max(...values));
}
const place = (j) => at[j] ?? D.topics[j].chosen ?? best(D.topics[j]);

function precisionRecall(j) {
  const t = D.topics[j], k = place(j), was = D.changes && D.changes.topics[j].curve;
  const points = (retrieved, hits, X, Y) => {
    const found = [];
    retrieved.forEach((r, i) => {
      if (!r) return;
      const y = Y(hits[i] / r);
      if (found.length) found.push([X(hits[i] / t.n), found[found.length - 1][1]]);
      found.push([X(hits[i] / t.n), y]);
    });
    return path(found);
  };
  const [, r, hits] = t.cuts;
  return plot({label: `Precision and recall of ${D.labels[j]}: average precision ${f3(t.ap)}`, x: [0, 1], y: [0, 1],
    xTicks: UNIT, yTicks: UNIT, xTitle: "recall", yTitle: "precision"}, (X, Y) => [
    was && t.n ? s("path", {class: "line l1", d: points(...was, X, Y)}) : null,
    t.n ? s("path", {class: "line l0", d: points(r, hits, X, Y)}) : null,
    t.n && r[k] ? s("circle", {class: "dot here", cx: X(hits[k] / t.n), cy: Y(hits[k] / r[k]), r: 5}) : null]);
}

function histogram(j) {
  const t = D.topics[j], [low, high, positives, negatives] = t.histogram, n = positives.length;
  const log = (count) => Math.log10(1 + count), most = Math.max(...positives, ...negatives, 9), width = (high - low) / n;
  const ticks = [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6].filter((c) => c <= most).map((c) => [log(c), c.toLocaleString("en")]);
  const cut = t.cuts[0][place(j)];
  const bars = (counts, name, from, X, Y) => counts.map((count, k) => count ? s("rect", {class: name,
    x: X(low + (k + from) * width), width: Math.max(X(low + width * 0.46) - X(low), 1), y: Y(log(count)),
    height: Y(0) - Y(log(count))}, s("title", {}, `${count} at ${(low + k * width).toFixed(2)} and above`)) : null);
  return plot({label: `Scores of ${D.labels[j]}: ${t.n} documents that have it, ${D.documents - t.n} that do not`,
    x: [low, high], y: [0, log(most)], xTicks: [low, (low + high) / 2, high].map((v) => [v, v.toFixed(2)]),
    yTicks: ticks, xTitle: "score", yTitle: "documents"}, (X, Y) => [
    bars(negatives, "bar negative", 0.02, X, Y), bars(positives, "bar positive", 0.5, X, Y),
    cut === null || cut === undefined ? null :
      s("line", {class: "cut", x1: X(Math.min(Math.max(cut, low), high)), x2: X(Math.min(Math.max(cut, low), high)), y1: T, y2: H - B})]);
}

const marked = (parts) => h("p", {class: "text", dir: "auto"}, parts.map((part) => typeof part === "string" ? part :
  h("mark", {class: (part[0] > 0 ? "for" : "against") + Math.abs(part[0])}, part[1])));

const labelOf = new Map(D.names.map((topic, j) => [topic, D.labels[j]]));

function article(one, ...more) {
  const p = one.p === null || one.p === undefined ? "" : `, probability ${f3(one.p)}`;
  const score = one.score === undefined ? "" : `score ${one.score}${p}`;
  return h("article", {}, h("p", {class: "of"}, h("b", {}, one.id), ` ${score} · `,
    one.topics.length ? "labelled " + one.topics.map((topic) => labelOf.get(topic) ?? topic).join(", ") : "without a label"), marked(one.text),
    more.length ? more : reasons(one.reasons.map(([term, value]) => `${term} ${signed(value)}`)));
}
const reasons = (texts) => h("p", {class: "reasons"}, texts.length ? "Evidence: " + texts.join(" · ") : "No known term.");

function documents(title, found, none, make = article) {
  return h("div", {}, h("h4", {}, title), found.length ? found.map((one) => make(one)) : h("p", {class: "none"}, none));
}

function terms(t) {
  const most = Math.max(...t.terms.map(([, w]) => Math.abs(w)), 1e-9);
  return h("table", {class: "terms"}, h("caption", {}, "Terms of largest weight"), h("thead", {}, h("tr", {},
    ["Term", "Weight"].map((text) => h("th", {scope: "col"}, text)), h("td", {}))), h("tbody", {}, t.terms.map(([term, w]) =>
    h("tr", {}, h("th", {scope: "row"}, term), h("td", {}, w.toFixed(3)), h("td", {}, s("svg", {viewBox: "0 0 100 10", width: 100,
      height: 10, "aria-hidden": "true"}, s("rect", {class: "bar " + (w > 0 ? "positive" : "against"), x: w > 0 ? 50 : 50 + (50 * w) / most,
      y: 1, height: 8, width: (50 * Math.abs(w)) / most})))))));
}

function change(j) {
  const c = D.changes.topics[j], [was, now] = D.changes.names;
  const make = (one) => article(one, reasons(one.reasons.map(([term, a, b]) => `${term} ${signed(a)} → ${signed(b)}`)),
    h("p", {class: "reasons"}, `Above the threshold by ${one.margins.map((m) => (m === null ? "–" : signed(m))).join(" → ")}`));
  return h("div", {}, h("h4", {}, `What changed from ${was} to ${now}`),
    h("p", {}, `Average precision ${f3(c.ap)} → ${f3(D.topics[j].ap)}; ${c.better} decisions became right, ${c.worse} wrong ` +
      `(McNemar p ${c.p[0]}, corrected ${c.p[1]}).`),
    h("table", {class: "terms"}, h("caption", {}, `Terms whose weights differ most, on the scale of ${now}`), h("thead", {}, h("tr", {},
      ["Term", was, now].map((text) => h("th", {scope: "col"}, text)))), h("tbody", {}, c.terms.map(([term, a, b]) =>
      h("tr", {}, h("th", {scope: "row"}, term), h("td", {}, a.toFixed(3)), h("td", {}, b.toFixed(3)))))),
    documents("Became right", c.examples[0], "None.", make), documents("Became wrong", c.examples[1], "None.", make));
}

function topic(j, focus) {
  const t = D.topics[j], order = rowsOf("table").map((row) => Number(row.querySelector("a").hash.slice(7)));
  const here = order.indexOf(j), go = (step, text) => h("button", {type: "button", disabled: !(order[here + step] >= 0),
    onclick: () => { location.hash = "topic-" + order[here + step]; }}, text);
  const plots = h("div", {class: "plots"}), out = h("output", {for: "cut", "aria-live": "polite"});
  const slider = h("input", {type: "range", id: "cut", min: 0, max: t.cuts[0].length - 1, step: 1, value: place(j)});
  const draw = () => {
    const k = place(j), [thresholds, retrieved, hits] = t.cuts.map((values) => values[k]);
    const p = retrieved ? hits / retrieved : NaN, shown = thresholds === null ? "above all scores" : thresholds.toFixed(3);
    const text = `precision ${f3(p)}, recall ${f3(hits / t.n)}, F1 ${f3(f1(hits, retrieved, t.n))}`;
    out.replaceChildren(h("b", {}, `Threshold ${shown}${k === t.chosen ? " (the model’s)" : ""}: `), text,
      `; ${retrieved.toLocaleString("en")} of ${D.documents.toLocaleString("en")} documents pass, ${hits.toLocaleString("en")} of them correctly.`);
    slider.setAttribute("aria-valuetext", `${shown}: ${text}`);
    plots.replaceChildren(figure("Precision and recall", precisionRecall(j), D.changes ? key(D.changes.names.map((name, i) =>
      [`l${1 - i}`, name])) : null), figure("Scores", histogram(j), h("ul", {class: "key"}, h("li", {}, h("i", {class: "positive"}),
      "have the topic"), h("li", {}, h("i", {class: "negative"}), "do not"))),
      ...(t.calibration ? [figure("Calibration", reliability(t.calibration, "Calibration of " + D.labels[j] + ":"))] : []),
      figure("Average precision and training size", bySize(j)));
    moved();
  };
  slider.addEventListener("input", () => { at[j] = Number(slider.value); draw(); });
  const reset = h("button", {type: "button", onclick: () => { delete at[j]; slider.value = place(j); draw(); }}, t.chosen === null ? "Back" : "Back to the model’s");
  const mistaken = D.confusion.filter(([a, b]) => a === j || b === j).slice(0, 8).map(([a, b, n]) =>
    h("li", {}, a === j ? `${n} got ${D.labels[b]} instead` : `${n} of ${D.labels[a]} got this topic instead`));
  const heading = h("h3", {tabindex: -1, dir: "auto"}, D.labels[j]);
  $("one").replaceChildren(...[h("div", {class: "head"}, heading, h("p", {class: "tools"}, go(-1, "← Previous"), go(1, "Next →"))),
    h("p", {}, `${t.train.toLocaleString("en")} training documents, ${t.n.toLocaleString("en")} positives in the evaluation, average precision ${f3(t.ap)}.`),
    h("p", {class: "slider"}, h("label", {for: "cut"}, "Threshold: from none to all"), slider, reset),
    t.chosen === null ? h("p", {class: "none"}, "The model gives each document exactly one topic; here a threshold decides, for illustration.") : null,
    h("p", {}, out), plots,
    h("div", {class: "two"}, t.terms.length ? terms(t) : h("p", {class: "none"}, "No term has a weight."),
      h("div", {}, h("h4", {}, "Confused with"), mistaken.length ? h("ul", {}, mistaken) : h("p", {class: "none"}, "None."))),
    ...(D.changes ? [change(j)] : []),
    documents("Worst false positives", t.wrong[0], "None."),
    documents("Worst false negatives", t.wrong[1], "None.")].filter(Boolean));
  draw();
  for (const row of rowsOf("table")) row.classList.toggle("here", row.querySelector("a").hash === "#topic-" + j);
  if (focus) { $("topic").scrollIntoView(); heading.focus({preventScroll: true}); }
}

// Show macro and micro F1 of all thresholds, once one was moved.
function moved() {
  if (!at.some((k) => k !== undefined)) { $("moved").textContent = ""; return; }
  const counts = D.topics.map((t, j) => at[j] === undefined ? [...t.given, t.n] : [t.cuts[1][at[j]], t.cuts[2][at[j]], t.n]);
  const tested = counts.filter(([, , n]) => n), [given, hits, n] = [0, 1, 2].map((i) => sum(counts.map((c) => c[i])));
  $("moved").textContent = `With your thresholds: macro F1 ` +
    `${f3(sum(tested.map(([g, k, m]) => f1(k, g, m))) / tested.length)}, micro F1 ${f3(f1(hits, given, n))}.`;
}

// --- tables -------------------------------------------------------------------------------------------------------
const rowsOf = (id) => [...$(id).tBodies[0].rows];
const number = (text) => { const v = Number(text.replace(/[,+]/g, "")); return text === "–" ? -Infinity : v; };

function sortable(id) {
  const table = $(id);
  if (!table) return;
  [...table.tHead.rows[0].cells].forEach((cell, k) => {
    const button = h("button", {type: "button", onclick: () => {
      const up = cell.getAttribute("aria-sort") === (k ? "descending" : "ascending") ? !k ? -1 : 1 : k ? -1 : 1;
      const value = (row) => row.cells[k].textContent;
      const rows = rowsOf(id).sort((a, b) => up * (isNaN(number(value(a))) || isNaN(number(value(b))) ?
        value(a).localeCompare(value(b)) : number(value(a)) - number(value(b)) || 0));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    }}, cell.textContent);
    cell.replaceChildren(button);
  });
}

function filter() {
  const wanted = $("filter").value.toLowerCase(), band = D.in_bands[$("band").value];
  const members = new Set(band), rows = rowsOf("table");
  for (const row of rows) {
    const link = row.querySelector("a");
    row.hidden = !(link.textContent.toLowerCase().includes(wanted) && (!band || members.has(Number(link.hash.slice(7)))));
  }
  $("shown").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} topics`;
}

function labelIssues() {
  const all = D.label_issues, lines = () => all.map((one) => JSON.stringify({id: one.id, split: one.split, topic: D.names[one.t],
    labelled: one.has, probability: one.p, score: one.score, topics: one.topics})).join("\n") + "\n";
  const save = () => {
    const url = URL.createObjectURL(new Blob([lines()], {type: "application/jsonl"}));
    h("a", {href: url, download: "label-issues.jsonl"}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  if (!all.length) { $("label-issues").append(h("p", {class: "none"}, "None.")); return; }
  const list = h("div", {}), kind = h("select", {onchange: () => show()}, ["all", "have the topic, probably wrongly", "lack the topic, probably wrongly"].map((text, k) =>
    h("option", {value: k}, text)));
  const show = () => list.replaceChildren(...all.filter((one) => kind.value === "0" || one.has === (kind.value === "1")).map((one) =>
    h("details", {}, h("summary", {}, h("b", {}, one.id), one.has ? " has " : " lacks ", h("b", {}, D.labels[one.t]),
      `, probability ${f3(one.p)}: `, one.title, h("span", {class: "of"}, ` (${one.split})`)),
      article(one, reasons(one.reasons.map(([term, value]) => `${term} ${signed(value)}`)),
        h("p", {}, h("a", {href: "#topic-" + one.t}, `Show the topic ${D.labels[one.t]}`))))));
  $("label-issues").append(h("p", {class: "tools"}, h("label", {}, "Documents that ", kind), h("button", {type: "button", onclick: save},
    "Save as JSON Lines")), h("p", {}, `${D.n_label_issues.toLocaleString("en")} labels in all; the first ${all.length} are shown.`), list);
  show();
}

function pairs() {
  if (!D.confusion.length) { $("pairs").append(h("p", {class: "none"}, "None.")); return; }
  const link = (j) => h("a", {href: "#topic-" + j}, D.labels[j]);
  const caption = `${D.confusion.length} of ${D.n_confusion} pairs, the most frequent first`;
  $("pairs").append(h("div", {class: "scroll", role: "region", tabindex: 0, "aria-label": "Pairs of topics"}, h("table", {id: "mistaken"},
    h("caption", {}, caption), h("thead", {}, h("tr", {}, ["Documents of", "got instead", "Documents"].map((text) => h("th", {scope: "col"}, text)))),
    h("tbody", {}, D.confusion.map(([a, b, n]) => h("tr", {}, h("th", {scope: "row"}, link(a)), h("td", {class: "word"}, link(b)), h("td", {}, n)))))));
}

function follow(focus) {
  const asked = /^#topic-(\d+)$/.exec(location.hash);
  if (asked && D.topics[asked[1]]) topic(Number(asked[1]), focus);
}

overview();
for (const name of Object.keys(D.in_bands)) $("band").append(h("option", {}, name));
$("filter").addEventListener("input", filter);
$("band").addEventListener("change", filter);
filter();
labelIssues();
pairs();
["table", "changed", "mistaken"].forEach(sortable);
addEventListener("hashchange", () => follow(true));
topic(Number(rowsOf("table")[0].querySelector("a").hash.slice(7)), false);
follow(true);
