
// Draw the prevalence of each topic by period, with its interval.
const STEP = 12;  // topics that a press on "More" adds
const percent = (value) => (value >= 0.0001 ? (value * 100).toFixed(2) : Number((value * 100).toPrecision(2))) + "%";
const tick = (value) => Number((value * 100).toPrecision(3)) + "%";
const whole = (value) => value.toLocaleString("en");
const known = D.periods.map((_, i) => i).filter((i) => !D.undated[i]);  // periods with a date or a value
const topics = D.topics.map((topic, j) => ({...topic, j, text: topic.name.toLowerCase()}));
let shown = STEP, here = 0;

// Return up to five round numbers from 0 to at least `most`.
function ticks(most) {
  const step = [1, 2, 5, 10].map((n) => n * 10 ** Math.floor(Math.log10(most / 4))).find((n) => most / n <= 4.5);
  return Array.from({length: Math.ceil(most / step - 1e-9) + 1}, (_, k) => k * step);
}

// Where a period is on the x axis: dates by their distance in time, other values one after the other.
const at = D.dated ? known.map((i) => Date.parse(D.periods[i])) : known.map((_, k) => k);
const range = D.dated ? [at[0], at[at.length - 1]] : [-0.5, known.length - 0.5];

function curve(topic) {
  const {prevalence, low, high, tagged, name} = topic, y = ticks(Math.max(...known.flatMap((i) => [high[i], tagged[i]]), 1e-6));
  const top = known.reduce((best, i) => (prevalence[i] > prevalence[best] ? i : best), known[0]), last = known[known.length - 1];
  const say = (i) => `${percent(prevalence[i])} (${percent(low[i])} to ${percent(high[i])}) in ${D.periods[i]}`;
  const label = `Prevalence of ${name}: ${say(known[0])}, ${say(last)}; highest: ${say(top)}`;
  const few = D.dated ? [...new Set([0, known.length >> 1, known.length - 1])] : known.length > 6 ? [] : known.map((_, k) => k);
  return plot({label, x: range, y: [0, y[y.length - 1]], yTicks: y.map((v) => [v, tick(v)]),
    xTicks: few.map((k) => [at[k], D.periods[known[k]].slice(0, 12)]), xTitle: "", yTitle: ""}, (X, Y) => {
    const points = (values) => known.map((i, k) => [X(at[k]), Y(values[i])]);
    const dots = known.map((i, k) => s("circle", {class: "dot", cx: X(at[k]), cy: Y(prevalence[i]), r: known.length > 40 ? 1.5 : 3},
      s("title", {}, `${D.periods[i]}: ${say(i)}, ${whole(D.documents[i])} documents`)));
    if (!D.dated) {
      return [known.map((i, k) => s("path", {class: "line l0", d: path([[X(at[k]), Y(low[i])], [X(at[k]), Y(high[i])]])})), dots,
        known.map((i, k) => s("path", {class: "line l5", d: path([[X(at[k]) - 9, Y(tagged[i])], [X(at[k]) + 9, Y(tagged[i])]])}))];
    }
    return [s("path", {class: "band", d: path([...points(high), ...points(low).reverse()]) + "Z"}),
      s("path", {class: "line l2", d: path(points(tagged))}), s("path", {class: "line l0", d: path(points(prevalence))}), dots];
  });
}

// How much a prevalence has changed from the first to the last period: the ratio, on a logarithmic scale.
const change = ({prevalence}) => Math.log((prevalence[known[known.length - 1]] + 1e-6) / (prevalence[known[0]] + 1e-6));
const ORDERS = {
  "most frequent": (a, b) => a.j - b.j, "largest rise": (a, b) => change(b) - change(a), "largest fall": (a, b) => change(a) - change(b),
  "name": (a, b) => a.name.localeCompare(b.name),
};
const listed = () => {
  const wanted = $("filter").value.toLowerCase();
  return topics.filter((topic) => topic.text.includes(wanted)).sort(ORDERS[$("order").value]);
};

function draw() {
  const found = listed(), rest = found.length - shown;
  $("plots").replaceChildren(...found.slice(0, shown).map((topic) => h("figure", {}, h("figcaption", {},
    h("button", {type: "button", class: "name", dir: "auto", onclick: () => choose(topic.j, true)}, topic.name)), curve(topic))));
  $("shown").textContent = `${whole(Math.min(shown, found.length))} of ${whole(found.length)} topics`;
  $("more").replaceChildren(...(rest > 0 ? [h("button", {type: "button", onclick: () => { shown += STEP; draw(); $("more").querySelector("button")?.focus(); }},
    `Show ${whole(Math.min(rest, STEP))} more`)] : []));
}

function choose(j, focus) {
  here = j;
  const topic = topics[j], order = listed(), place = order.findIndex((each) => each.j === j);
  const go = (step, text) => h("button", {type: "button", disabled: !order[place + step], onclick: () => choose(order[place + step].j, true)}, text);
  const heading = h("h3", {tabindex: -1, dir: "auto"}, topic.name);
  const cells = (i) => [whole(D.documents[i]), percent(topic.tagged[i]), percent(topic.prevalence[i]), percent(topic.low[i]), percent(topic.high[i])];
  $("one").replaceChildren(h("div", {class: "head"}, heading, h("p", {class: "tools"}, go(-1, "← Previous"), go(1, "Next →"))),
    figure(`Estimated prevalence with its 95 % interval; ${D.dated ? "dotted" : "grey"}: share of tags`, curve(topic)),
    h("div", {class: "scroll", role: "region", tabindex: 0, "aria-label": `Prevalence of ${topic.name}`}, h("table", {},
      h("thead", {}, h("tr", {}, ["Period", "Documents", "Tagged", "Prevalence", "Low", "High"].map((text) => h("th", {scope: "col"}, text)))),
      h("tbody", {}, D.periods.map((period, i) => h("tr", {}, h("th", {scope: "row"}, period), cells(i).map((cell) => h("td", {}, cell))))))));
  if (focus) { $("topic").scrollIntoView(); heading.focus({preventScroll: true}); }
}

for (const name of Object.keys(ORDERS)) $("order").append(h("option", {}, name));
for (const id of ["filter", "order"]) $(id).addEventListener("input", () => { shown = STEP; draw(); });
draw();
choose(0, false);
