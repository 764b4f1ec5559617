// The figures of a topic's page: facts, words of largest weight, quality, and the curve from score to probability.

import { bdi, clamp, counted, decimal, label, node, passable, percent, sigmoid, signed, swings, table } from "./common.js";

const MEASURES = {
  average_precision: "Average precision", r_precision: "R-precision", precision_at_10: "Precision of the first 10", ndcg: "NDCG",
  precision: "Precision of the tags", recall: "Recall of the tags", f1: "F1 of the tags", test_positives: "Test documents",
};

export function factList(about) {
  const chance = about.curve && passable(about.threshold) ? ` (${percent(sigmoid(about.curve.a * about.threshold + about.curve.b))})` : "";
  const pairs = [["Training documents", counted.format(about.train_size)], ["Threshold", decimal(about.threshold) + chance]];
  for (const [key, name] of [["epochs", "Epochs"], ["support", "Support documents"]]) {
    const value = about.quality?.facts?.[key];
    if (typeof value === "number") pairs.push([name, counted.format(value)]);
  }
  return node("dl", { class: "facts" }, pairs.map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, value))));
}

function barTable(name, number, lines) {
  const made = lines.map(([words, value, bar]) => node("tr", {}, node("th", { scope: "row" }, bdi(words)), node("td", { class: "number" }, value), node("td", {}, bar ?? "")));
  return table("terms", [[name], [number, "number"]], made);
}

export function termTable(terms) {
  const bars = swings(terms.map(({ weight }) => weight));
  return barTable("Word", "Weight", terms.map(({ term, weight }, i) => [term, signed(weight), bars[i]]));
}

export function qualityTable(quality) {
  if (!quality) return node("p", {}, "The model has no evaluation of this topic.");
  const measured = Object.entries(MEASURES).filter(([key]) => typeof quality[key] === "number");
  return barTable("Measure", "Value", measured.map(([key, name]) => key === "test_positives"
    ? [name, counted.format(quality[key]), null] : [name, quality[key].toFixed(3), node("span", { class: "fill", "aria-hidden": "true" }, node("i", { "width%": 100 * quality[key] }))]));
}

export function curveFigure({ topic, threshold, curve: { a, b } }, tag) {
  const middle = a > 0 ? -b / a : 0;
  const reach = a > 0 ? 6 / a : 1;
  const finite = [middle - reach, middle + reach, threshold].filter(passable);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const [W, H, L, B] = [420, 200, 42, 24];
  const x = (score) => L + ((W - L - 10) * (clamp(score, low, high) - low)) / (high - low);
  const y = (p) => 8 + (H - B - 8) * (1 - p);
  const at = (score) => sigmoid(a * score + b);
  const path = Array.from({ length: 81 }, (_, i) => low + ((high - low) * i) / 80).map((s, i) => `${i ? "L" : "M"}${x(s).toFixed(1)} ${y(at(s)).toFixed(1)}`).join("");
  const lines = [0, 0.5, 1].flatMap((p) => [node("line", { class: "grid", x1: L, x2: W - 10, y1: y(p), y2: y(p) }), label(L - 6, y(p) + 4, `${100 * p} %`, "end")]);
  const ends = [low, (low + high) / 2, high].map((s, i) => label(x(s), H - 6, decimal(s), ["start", "middle", "end"][i]));
  const cut = passable(threshold) && node("line", { class: "cut", x1: x(threshold), x2: x(threshold), y1: 8, y2: H - B });
  const dot = tag && node("circle", { class: "dot", cx: x(tag.score), cy: y(at(tag.score)), r: 6 });
  const words = `A score of ${decimal(middle)} means 50 %; the threshold ${passable(threshold) ? `${decimal(threshold)} (dashed) means ${percent(at(threshold))}` : "is never passed"}.`;
  const mine = tag ? ` The text on the page (dot) scores ${decimal(tag.score)}: ${percent(at(tag.score))}.` : "";
  return node("figure", {}, node("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Probability of ${topic} by score. ${words}${mine}` },
    lines, ends, node("path", { class: "line", d: path }), cut, dot), node("figcaption", {}, words, mine));
}

// Words that a new word is like.
export const likeOf = ({ like = [] }) => (like.length ? ` (like ${like.join(", ")}) ` : "");
