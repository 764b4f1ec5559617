
// Draw plots as SVG.
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const path = (points) => points.map(([x, y], k) => (k ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");
const W = 300, H = 220, L = 48, B = 38, T = 10, R = 14;

// Return an SVG with axes; `draw` gets the functions from values to coordinates and returns the nodes between the axes.
function plot({label, x, y, xTicks, yTicks, xTitle, yTitle}, draw) {
  const X = (v) => L + ((v - x[0]) / (x[1] - x[0] || 1)) * (W - L - R);
  const Y = (v) => H - B - ((v - y[0]) / (y[1] - y[0] || 1)) * (H - B - T);
  const named = (tick) => (Array.isArray(tick) ? tick : [tick, String(tick)]);
  return s("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label, class: "plot"},
    yTicks.map(named).map(([v, text]) => [
      s("line", {class: "grid", x1: L, x2: W - R, y1: Y(v), y2: Y(v)}),
      s("text", {x: L - 6, y: Y(v) + 4, "text-anchor": "end"}, text)]).flat(),
    xTicks.map(named).map(([v, text]) => [
      s("line", {class: "grid", x1: X(v), x2: X(v), y1: H - B, y2: H - B + 4}),
      s("text", {x: X(v), y: H - B + 16, "text-anchor": X(v) > W - R - 9 && text.length > 3 ? "end" : "middle"}, text)]).flat(),
    s("line", {class: "axis", x1: L, x2: W - R, y1: H - B, y2: H - B}),
    s("text", {x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle"}, xTitle),
    s("text", {transform: `translate(11 ${(H - B + T) / 2}) rotate(-90)`, "text-anchor": "middle"}, yTitle),
    ...draw(X, Y).flat());
}
const figure = (caption, svg, ...more) => h("figure", {}, h("figcaption", {}, caption), svg, ...more);
const key = (entries) => h("ul", {class: "key"}, entries.map(([name, text]) => h("li", {},
  s("svg", {viewBox: "0 0 24 10", width: 24, height: 10, "aria-hidden": "true"},
    s("path", {class: "line " + name, d: "M1 5L23 5"})), text)));
