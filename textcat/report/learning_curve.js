
// Draw the accuracy by training documents: measured on parts of them, and the forecast with its band.
function learningCurve({documents, measured, forecast}) {
  const now = forecast[0], last = forecast[forecast.length - 1], count = (n) => n.toLocaleString("en");
  const values = [...measured, ...forecast].flatMap(([, ...figures]) => figures);
  const step = Math.max(...values) - Math.min(...values) > 0.45 ? 5 : 10;  // ticks a unit
  const [low, high] = [Math.floor(Math.min(...values) * step), Math.ceil(Math.max(...values) * step)];
  const label = `Top-1 accuracy by training documents: ${measured.map(([n, p]) => `${f3(p)} at ${count(n)}`).join(", ")}; forecast ` +
    `${f3(now[1])} at ${count(documents)}, ${f3(last[1])} (${f3(last[2])} to ${f3(last[3])}) at ${count(last[0])}`;
  const svg = plot({label, x: [0, last[0]], y: [low / step, high / step], xTicks: [0, documents, last[0]].map((n) => [n, count(n)]),
    yTicks: Array.from({length: high - low + 1}, (_, k) => (low + k) / step), xTitle: "training documents", yTitle: "top-1 accuracy"},
  (X, Y) => [
    s("path", {class: "band", d: path([...forecast.map(([n, , , top]) => [X(n), Y(top)]),
      ...forecast.map(([n, , bottom]) => [X(n), Y(bottom)]).reverse()]) + "Z"}),
    s("path", {class: "line l0", d: path(forecast.map(([n, p]) => [X(n), Y(p)]))}),
    measured.map(([n, p]) => s("circle", {class: "dot", cx: X(n), cy: Y(p), r: 3.5}, s("title", {}, `${count(n)} documents: ${f3(p)}`)))]);
  return figure("Learning curve and forecast", svg, h("ul", {class: "key"}, h("li", {}, h("i", {class: "measured"}),
    "trained on parts of the documents"), h("li", {}, h("i", {class: "forecast"}), "forecast with its 90 % band")));
}
