// The page of `textcat serve`: a text, its topics, and why. Data of the server and of files is only put into text nodes.
// The address holds the state of the page: #view=read&model=reuters&topic=earn (&z=… holds a packed text).

import { $, Problem, ask as asked, bdi, button, bytes, clamp, count, counted, decimal, keyForm, message, node, on, passable, percent, pieces, sigmoid, signed, swings, table, wellFormed, worth } from "./common.js";
import { showCard } from "./card.js";
import { corrections } from "./corrections.js";
import { curveFigure, factList, likeOf, qualityTable, termTable } from "./figures.js";
import { showMany } from "./many.js";
import { pack, shifted, unpack } from "./links.js";
import { called, learnNames, nameOf } from "./names.js";

const CANDIDATES = 50; // topics that are requested, until a slider needs more
const NEXT = 8; // topics that are shown though not given
const REASONS = 60; // terms that are marked in the text
const LISTED = 12; // terms that are listed
const FOLDED = 10; // topics of a longer list, until it is unfolded
const FADES = 8000; // milliseconds after which the notice of a copied link goes
const PACKED = 16_000; // characters of a packed text in a link
const LONG = 200_000; // longer texts, in characters, are not marked: browsers are too slow
const VIEWS = ["read", "many", "topics", "topic", "compare"];
const FIELDS = { title: "title", body: "body", text: "body", "": "body" }; // which field shows a zone of the server's

const state = {
  models: [], model: null, versions: new Map(), limit: null,
  text: { title: "", body: "" }, z: null,
  tags: [], given: new Set(), tagged: false, minimal: null, own: new Map(),
  pinned: null, hovered: null, term: null, unfolded: false,
  evidence: new Map(), facts: new Map(), marks: {}, view: null,
};

// ---------------------------------------------------------------- numbers

const shown = (tag) => (tag.probability === null || tag.probability === undefined ? decimal(tag.score) : percent(tag.probability));

// ---------------------------------------------------------------- the server

async function ask(path, options) {
  const content = await asked(path, options);
  if (content.model && content.version) seen(content.model, content.version);
  learnNames(content);
  return content;
}

const modelShown = () => state.models.find(({ model }) => model === state.model);
const of = (model, rest) => `models/${encodeURIComponent(model)}/${rest}`;
const topicsLike = (query) => ask(of(state.model, `topics?${new URLSearchParams(query)}`));
const explain = async (model, topics, signal) => (await ask(of(model, "explain"), { json: { ...content(), topics, n: REASONS }, signal })).explanations;
const tagsOf = (model, top, signal) => [ask(of(model, "tag"), { json: { ...content(), top }, signal }), ask(of(model, "tag"), { json: content(), signal })];

// A model may be replaced while the page is open: every answer names its version.
function seen(model, version) {
  const before = state.versions.get(model);
  if (before === version) return;
  state.versions.set(model, version);
  if (model === state.model) showVersion();
  if (before === undefined) return;
  state.evidence.clear();
  state.facts.clear();
  notice("The model ", bdi(model), ` was replaced: version ${version} now answers, no longer ${before}.`);
  state.tagged = false;
  setTimeout(show);
}

function showVersion() {
  const version = state.versions.get(state.model) ?? "";
  $("version").textContent = version && `version ${version}`;
}

// ---------------------------------------------------------------- messages

// A notice goes by itself, unless another took its place.
function brief(...content) {
  notice(...content);
  const box = $("notice").firstChild;
  setTimeout(() => { if (!box.contains(document.activeElement)) box.remove(); }, FADES);
}

const notice = (...content) => message($("notice"), false, node("p", {}, ...content));

function wrong(error, again = null) {
  if (error.name === "AbortError") return;
  const parts = [node("p", {}, node("strong", {}, error.title ?? "The page has an error"), ": ", error.message,
    error.wait ? ` Try again in ${count(error.wait, "second")}.` : "")];
  if (error.status === 401 || error.status === 403) parts.push(keyForm(start));
  else if (again) parts.push(button({ onclick: () => { $("error").replaceChildren(); again(); } }, "Try again"));
  if (!(error instanceof Problem)) console.error(error);
  message($("error"), true, ...parts);
}

// ---------------------------------------------------------------- the address

function route() {
  const given = new URLSearchParams(location.hash.slice(1));
  const view = VIEWS.includes(given.get("view")) ? given.get("view") : "read";
  return { view, ...Object.fromEntries(["model", "topic", "with", "q", "min", "z"].map((key) => [key, given.get(key)])) };
}

function address(changes) {
  const { z: _, ...here } = route();
  const wanted = { ...here, model: state.model, min: state.minimal === null ? null : Number(state.minimal.toPrecision(4)), ...changes };
  const pairs = Object.entries(wanted).filter(([key, value]) => value !== null && value !== undefined && value !== "" && !(key === "view" && value === "read"));
  return `#${new URLSearchParams(pairs)}`;
}

function go(changes, replace = false) {
  const hash = address(changes);
  if (hash === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  show();
}

// Show what the address says.
async function show() {
  const here = route();
  const known = state.models.map((model) => model.model);
  if (!known.length) return;
  const model = known.includes(here.model) ? here.model : known[0];
  const other = model !== state.model;
  if (other) {
    Object.assign(state, { model, minimal: null, hovered: null, tagged: false, unfolded: false });
    state.own.clear();
    state.facts.clear();
    state.evidence.clear();
    rows.clear();
    $("model").value = model;
    showVersion();
  }
  const before = state.view;
  if (before && before !== here.view) $("error").replaceChildren();
  state.view = here.view;
  if (here.model && here.model !== model) wrong(new Problem("No such model", `The server has no model '${here.model}', only ${known.join(", ")}. The page shows ${model}.`));
  for (const view of VIEWS) $(view).hidden = view !== here.view;
  for (const [id, view] of [["to-read", "read"], ["to-many", "many"], ["to-topics", "topics"], ["to-compare", "compare"]]) {
    const keep = view === "compare" ? { with: here.with } : { with: null };
    $(id).href = address({ view, topic: null, q: null, ...(view === "read" ? {} : { min: null }), ...keep });
    if (view === here.view || (view === "topics" && here.view === "topic")) $(id).setAttribute("aria-current", "page");
    else $(id).removeAttribute("aria-current");
  }
  const titles = { read: "Text", many: "Many texts", topics: "Topics", topic: here.topic ?? "Topic", compare: "Compare" };
  document.title = `${titles[here.view]} · ${model} · textcat`;
  if (before && before !== here.view) {
    scrollTo(0, 0);
    $(`${here.view}-heading`).focus({ preventScroll: true });
  }
  const least = here.min === null || here.min === "" ? null : Number(here.min);
  state.minimal = Number.isFinite(least) ? least : null;
  if (here.z && here.z !== state.z) await unpackInto(here.z);
  if (here.view === "read") {
    state.pinned = here.topic;
    if (!state.tagged) await tagNow();
    else drawTopics();
  } else if (here.view === "many") showMany({ ask: (documents) => ask(of(state.model, "tag-batch"), { json: { documents } }), documents: state.documents, wrong });
  else if (here.view === "topics") await showTopics(here.q ?? "");
  else if (here.view === "topic") await showTopic(here.topic ?? "");
  else await showComparison(here);
}

// ---------------------------------------------------------------- the text

const empty = () => !(state.text.title + state.text.body).trim();

function content() {
  const { title, body } = state.text;
  return title.trim() ? { zones: { title: wellFormed(title), body: wellFormed(body) } } : { text: wellFormed(body) };
}

function setText(text) {
  Object.assign(state.text, { title: "", body: "" }, text);
  for (const field of ["title", "body"]) $(field).value = state.text[field];
  changed();
}

function changed() {
  for (const field of ["title", "body"]) {
    const after = $(field).value;
    state.marks[field] = shifted(state.marks[field] ?? [], state.text[field], after);
    state.text[field] = after;
    drawMarks(field);
  }
  state.evidence.clear();
  Object.assign(state, { tagged: false, unfolded: false });
  if (route().z) {
    state.z = null;
    history.replaceState(null, "", address({}));
  }
  drawSize();
}

function drawSize() {
  const size = new TextEncoder().encode(JSON.stringify(content())).length;
  $("link").disabled = $("clear").disabled = empty();
  const over = state.limit !== null && size > state.limit;
  $("size").className = over ? "size over" : "size";
  const characters = empty() ? "" : count([...state.text.title].length + [...state.text.body].length, "character");
  $("size").textContent = over ? `${bytes(size)}: the server takes ${bytes(state.limit)} at most` : [characters, state.limit && `at most ${bytes(state.limit)}`].filter(Boolean).join(", ");
  return !over;
}

let timer = null;
function tagSoon(wait = 250) {
  clearTimeout(timer);
  timer = setTimeout(tagNow, wait);
}

let running = null;
async function tagNow() {
  clearTimeout(timer);
  running?.abort();
  if (empty() || !drawSize()) {
    Object.assign(state, { tags: [], tagged: false, reason: "" });
    state.given.clear();
    busy(false);
    return drawTopics();
  }
  const { signal } = (running = new AbortController());
  busy(true);
  try {
    await tagBy(signal, CANDIDATES);
    $("error").replaceChildren();
    drawTopics();
    announce();
    if (state.given.size) await explainGiven(signal);
  } catch (error) {
    wrong(error, tagNow);
  } finally {
    if (running?.signal === signal) busy(false);
  }
}

async function tagBy(signal, top) {
  const [candidates, given] = await sameVersion(() => Promise.all(tagsOf(state.model, top, signal)));
  const others = candidates.tags.filter((tag) => !given.tags.some((other) => other.topic === tag.topic));
  const tags = [...given.tags, ...others].sort((a, b) => worth(b) - worth(a) || b.score - a.score);
  Object.assign(state, { tags, given: new Set(given.tags.map((tag) => tag.topic)), tagged: true, top, reason: given.reason });
}

// Answers that belong together must be of one version: ask again if the model was replaced.
async function sameVersion(asking) {
  const answers = await asking();
  return answers.every((answer) => answer.version === answers[0].version) ? answers : asking();
}

async function explainGiven(signal) {
  const topics = passing().map((tag) => tag.topic).slice(0, 10).filter((topic) => !state.evidence.has(topic));
  if (!topics.length) return;
  const answer = explain(state.model, topics, signal);
  topics.forEach((topic, place) => keep(state.evidence, topic, answer.then((explanations) => explanations[place])));
  await answer;
  drawEvidence();
}

function keep(map, key, promise) {
  map.set(key, promise);
  promise.catch(() => map.get(key) === promise && map.delete(key)); // a failed request is sent again
  return promise;
}

function explanation(topic) {
  return state.evidence.get(topic) ?? keep(state.evidence, topic, explain(state.model, [topic]).then(([why]) => why));
}

function facts(topic, terms = 25) {
  const key = `${terms} ${topic}`;
  return state.facts.get(key) ?? keep(state.facts, key, ask(of(state.model, `topic?${new URLSearchParams({ name: topic, terms })}`)));
}

function busy(on) {
  $("busy").hidden = !on;
  $("given").setAttribute("aria-busy", on);
}

function announce() {
  const tags = passing();
  $("summary").textContent = tags.length ? `${count(tags.length, "topic")} given` : "none given";
}

// ---------------------------------------------------------------- evidence in the text

const held = (field) => (zone) => field === (FIELDS[zone] ?? "body");

function marked(text, marks, end = "") {
  const made = [];
  let done = 0;
  for (const mark of marks) {
    made.push(text.slice(done, mark.start));
    const on = state.term !== null && mark.why.some((reason) => reason.term === state.term);
    const element = node("mark", { class: on ? `${mark.class} on` : mark.class }, text.slice(mark.start, mark.end));
    reasonsOf.set(element, mark.why);
    made.push(element);
    done = mark.end;
  }
  return [...made, text.slice(done) + end];
}
const reasonsOf = new WeakMap();

function drawMarks(field) {
  const under = $(`${field}-under`);
  const long = state.text[field].length > LONG;
  under.parentNode.classList.toggle("long", long);
  if (long) return under.replaceChildren();
  under.classList.toggle("dim", state.term !== null);
  return under.replaceChildren(...marked(state.text[field], state.marks[field] ?? [], "\u200b"));
}

const lit = () => state.hovered ?? state.pinned ?? passing()[0]?.topic ?? null;

async function drawEvidence() {
  const topic = lit();
  for (const row of document.querySelectorAll(".topics > li")) row.classList.toggle("lit", row.topic === topic);
  if (!state.tagged && state.tags.length) return; // keep the marks until there are new ones
  if (topic === null) return paint(null, []);
  try {
    const found = await explanation(topic);
    if (topic === lit() && state.tagged) paint(topic, found.reasons);
  } catch (error) {
    wrong(error, drawEvidence);
  }
}

function paint(topic, reasons) {
  const long = Math.max(state.text.title.length, state.text.body.length) > LONG;
  for (const field of ["title", "body"]) {
    state.marks[field] = topic === null || long ? [] : pieces(reasons, held(field), state.text[field]);
    drawMarks(field);
  }
  $("legend").hidden = topic === null;
  if (topic === null) return;
  if (long) return $("legend").replaceChildren(`The text is too long to mark words in it (more than ${count(LONG, "character")}); select a topic to see them listed.`);
  $("legend").replaceChildren(node("span", {}, "Evidence for ", node("b", {}, called(topic))),
    node("mark", { class: "pro m2" }, "speaks for it"), node("mark", { class: "con m2" }, "speaks against it"));
}

function emphasise(term) {
  state.term = term;
  for (const field of ["title", "body"]) drawMarks(field);
}

function tip(event) {
  const mark = document.elementsFromPoint(event.clientX, event.clientY).find((element) => reasonsOf.has(element));
  const box = $("tip");
  box.hidden = !mark;
  if (!mark) return;
  box.replaceChildren(...reasonsOf.get(mark).map((reason) => node("p", {}, bdi(reason.term), likeOf(reason), node("span", {}, signed(reason.contribution)))));
  box.style.left = `${clamp(event.clientX + 12, 4, innerWidth - box.offsetWidth - 4)}px`;
  box.style.top = `${event.clientY + 22 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 12 : event.clientY + 22}px`;
}
const noTip = () => { $("tip").hidden = true; };

// ---------------------------------------------------------------- topics of the text

// A topic's own slider overrides the one for all topics, which overrides the model's decision.
function passes(tag) {
  if (state.own.has(tag.topic)) return worth(tag) >= state.own.get(tag.topic);
  return state.minimal === null ? state.given.has(tag.topic) : worth(tag) >= state.minimal;
}
const passing = () => state.tags.filter(passes);

function scale() {
  const values = state.tags.map(worth);
  if (!state.tags.length || (state.tags[0].probability ?? null) !== null) return { low: 0, high: 1, name: "probability", show: percent };
  return { low: Math.min(0, ...values), high: Math.max(1e-6, ...values), name: "score", show: decimal };
}

function drawTopics() {
  const tags = passing();
  const others = state.tags.filter((tag) => !passes(tag)).slice(0, NEXT);
  const pinned = state.tags.find((tag) => tag.topic === state.pinned);
  if (pinned && !tags.includes(pinned) && !others.includes(pinned)) others.push(pinned);
  $("unknown").hidden = !state.reason;
  $("empty").hidden = state.tags.length > 0 || state.reason;
  $("minimal-box").hidden = !state.tags.length;
  $("others-box").hidden = !others.length;
  if (!state.tags.length) $("summary").textContent = "";
  else announce();
  const folded = !state.unfolded && tags.length > FOLDED;
  drawRows($("given"), folded ? tags.filter((tag, i) => i < FOLDED || tag.topic === state.pinned) : tags, true);
  $("unfold").hidden = tags.length <= FOLDED;
  $("unfold").textContent = folded ? `${counted.format(tags.length - FOLDED)} more` : `Only the first ${FOLDED}`;
  drawRows($("others"), others, false);
  drawMinimal();
  return drawEvidence();
}

// Rows are kept by topic, so that the focus stays when a topic moves to the other list.
const rows = new Map();
function drawRows(list, tags, given) {
  const focused = document.activeElement;
  const wanted = tags.map((tag) => drawRow(tag, given));
  for (const row of [...list.children]) if (!wanted.includes(row)) row.remove();
  wanted.forEach((row, place) => list.children[place] !== row && list.insertBefore(row, list.children[place] ?? null));
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function drawRow(tag, given) {
  const key = tag.topic;
  let row = rows.get(key);
  if (!row) {
    const number = rows.size;
    const details = node("div", { class: "details", id: `why-${number}`, hidden: true });
    const opener = button({ class: "row", "aria-expanded": "false", "aria-controls": details.id,
      onclick: () => go({ topic: state.pinned === key ? null : key }),
      onpointerenter: () => hover(key), onpointerleave: () => hover(null), onfocus: () => hover(key), onblur: () => hover(null), onkeydown: move },
      node("span", { class: "name" }, called(key)), node("span", { class: "value" }), node("span", { class: "bar", "aria-hidden": "true" }, node("i"), node("b", { hidden: true })));
    row = node("li", {}, opener, details);
    row.topic = key;
    rows.set(key, row);
  }
  const { low, high } = scale();
  const share = (value) => clamp((100 * (value - low)) / (high - low), 0, 100);
  row.className = given ? "given" : "";
  const status = state.given.has(key) && tag.status;
  row.querySelector(".value").replaceChildren(status ? node("span", { class: "aside" }, `${status} `) : "", shown(tag));
  row.querySelector(".bar i").style.width = `${share(worth(tag))}%`;
  const cut = state.own.get(key) ?? state.minimal;
  row.querySelector(".bar b").hidden = cut === null;
  row.querySelector(".bar b").style.left = `${share(cut ?? 0)}%`;
  const open = state.pinned === key;
  row.firstChild.setAttribute("aria-expanded", open);
  if (!open) row.lastChild.hidden = true;
  else drawDetails(row, tag);
  return row;
}

let waiting = null;
function hover(topic) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (state.hovered === topic) return;
    state.hovered = topic;
    drawEvidence();
  }, topic === null ? 120 : 40);
}

function move(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...document.querySelectorAll("#read .row")];
  all[all.indexOf(event.currentTarget) + step]?.focus();
}

async function drawDetails(row, tag) {
  const details = row.lastChild;
  const { topic } = tag;
  const shape = `${state.model} ${state.versions.get(state.model)} ${JSON.stringify(state.text)}`;
  details.hidden = false;
  if (details.shape === shape) return drawOwn(details, tag);
  details.shape = shape;
  if (!details.firstChild) details.append(node("p", { class: "sum" }, "Loading the explanation …"));
  try {
    const [why, about] = await Promise.all([explanation(topic), facts(topic)]);
    if (details.shape !== shape) return;
    fillDetails(details, tag, why, about);
  } catch (error) {
    details.shape = null;
    wrong(error, drawTopics);
  }
}

function fillDetails(details, tag, why, about) {
  const focused = details.contains(document.activeElement) ? document.activeElement.className : null;
  const parts = [reasonList(why), sumLine(why), withoutLine(why), neighbours(why.documents ?? []), ownSlider(tag, about), correct(tag),
    node("p", {}, node("a", { href: address({ view: "topic", topic: tag.topic, min: null }) }, "All about ", called(tag.topic)))];
  details.replaceChildren(...parts.filter(Boolean));
  if (focused) details.querySelector(`[class="${focused}"]`)?.focus({ preventScroll: true });
  drawOwn(details, tag);
}

function reasonItems(reasons, n, wrap) {
  const bars = swings(reasons.map((reason) => reason.contribution));
  return reasons.slice(0, n).map((reason, i) => node("li", {}, wrap(reason, [node("span", {}, bdi(reason.term), likeOf(reason)), bars[i], node("span", { class: "number" }, signed(reason.contribution))])));
}

function reasonList(why) {
  const items = reasonItems(why.reasons, LISTED, (reason, parts) => button({ onpointerenter: () => emphasise(reason.term), onpointerleave: () => emphasise(null), onfocus: () => emphasise(reason.term), onblur: () => emphasise(null),
    onclick: () => toEvidence(reason),
  }, parts));
  if (!items.length) return node("p", {}, "The model knows no word of the text.");
  return node("div", {}, node("h3", {}, "Words that speak for it (+) and against it (−)"), node("ul", { class: "reasons" }, items));
}

function toEvidence(reason) {
  const found = document.querySelector(".under mark.on");
  if (!found) return notice("The text has no single place for ", bdi(reason.term), ".");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  return found.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
}

function sumLine(why) {
  if (why.score === null) return node("p", { class: "sum" }, "This topic is not on the model’s shortlist for this text.");
  const words = why.reasons.reduce((sum, reason) => sum + reason.contribution, 0) + (why.rest ?? 0);
  const cut = why.threshold;
  const above = !passable(cut) ? ". The model never gives this topic." : `${why.score > cut ? ", above" : ", not above"} the threshold ${signed(cut)}.`;
  const others = (why.related ?? []).reduce((sum, topic) => sum + topic.contribution, 0);
  const related = others ? [", topics that often go with it ", node("b", {}, signed(others))] : [];
  return node("p", { class: "sum" }, "All words ", node("b", {}, signed(words)), ...related, ", bias ", node("b", {}, signed(why.bias)), ": score ", node("b", {}, signed(why.score)), above);
}

function withoutLine(why) {
  if (!why.without?.length) return null;
  const first = why.without.slice(0, FOLDED).flatMap((term, i) => [i ? ", " : "", node("b", {}, bdi(term))]);
  const others = why.without.length - FOLDED;
  const terms = others > 0 ? [...first, ` and ${count(others, "other word")}`] : why.without.flatMap((term, i) => [i ? (i === why.without.length - 1 ? " and " : ", ") : "", node("b", {}, bdi(term))]);
  return node("p", { class: "without" }, "Without ", ...terms, " the text would lose this topic.");
}

function neighbours(documents) {
  if (!documents.length) return null;
  const items = documents.map(({ id, title, contribution, positive }) => node("li", {},
    node("span", { class: `sign ${positive ? "pro" : "con"}`, role: "img", "aria-label": positive ? "speaks for it" : "speaks against it" }, positive ? "+" : "−"),
    node("span", {}, bdi(title || id), title && id && title !== id ? node("span", { class: "aside" }, " ", bdi(id)) : null, node("span", { class: "aside" }, ` ${signed(contribution)}`))));
  return node("div", {}, node("h3", {}, "Training documents that count most"), node("ul", { class: "papers" }, items.slice(0, FOLDED)), items.length > FOLDED && node("details", {}, node("summary", {}, `${items.length - FOLDED} more`), node("ul", { class: "papers" }, items.slice(FOLDED))));
}

// The slider of one topic starts at the topic's own threshold, as a probability.
function ownSlider(tag, about) {
  const { low, high, name, show } = scale();
  const own = !passable(about.threshold) ? high : name === "score" ? about.threshold : about.curve ? sigmoid(about.curve.a * about.threshold + about.curve.b) : 0.5;
  const id = `own-${[...rows.keys()].indexOf(tag.topic)}`;
  const set = (value) => { value === null ? state.own.delete(tag.topic) : state.own.set(tag.topic, value); drawTopics(); };
  const input = node("input", { type: "range", class: "own", id, min: low, max: high, step: (high - low) / 100, oninput: () => set(Number(input.value)) });
  const reset = button({ class: "quiet", "aria-label": "Reset to the model’s threshold", onclick: () => { set(null); input.focus(); } }, "Reset");
  const box = node("div", { class: "slider" }, node("label", { for: id }, `Minimum ${name} of `, called(tag.topic)), node("output", { for: id }), input, reset);
  box.draw = () => {
    const chosen = state.own.get(tag.topic);
    input.value = chosen ?? clamp(own, low, high);
    const words = show(chosen ?? own);
    box.querySelector("output").textContent = chosen === undefined ? `${words}, as in the model` : words;
    input.setAttribute("aria-valuetext", words);
    box.classList.toggle("idle", chosen === undefined);
    reset.hidden = chosen === undefined;
  };
  return box;
}
// A person says that the topic is right or wrong for the text; `textcat learn` takes the corrections.
function correct({ topic }) {
  const told = collected.of(content(), topic);
  const choice = (belongs, words) => button({ "aria-pressed": String(told === belongs), onclick: () => collected.tell(content(), topic, told === belongs ? null : belongs) }, words);
  return node("p", { class: "correct", role: "group", "aria-label": `Correct ${nameOf(topic)}` }, choice(true, "Right topic"), choice(false, "Wrong topic"));
}
const collected = corrections({
  wrong,
  show: (text) => { setText(text); tagNow(); },
  changed: () => {
    for (const row of document.querySelectorAll(".topics > li")) row.lastChild.shape = null;
    drawTopics();
  },
});

const drawOwn = (details) => details.querySelector(".slider")?.draw();

function drawMinimal() {
  const { low, high, name, show } = scale();
  const input = $("minimal");
  Object.assign(input, { min: low, max: high, step: (high - low) / 100 });
  input.value = state.minimal ?? (low + high) / 2;
  const words = state.minimal === null ? "each topic’s own" : show(state.minimal);
  $("minimal-label").textContent = `Minimum ${name}`;
  $("minimal-value").textContent = words;
  input.setAttribute("aria-valuetext", words);
  $("minimal-box").classList.toggle("idle", state.minimal === null);
  $("minimal-reset").hidden = state.minimal === null;
}

let sliding = null;
async function setMinimal(value) {
  state.minimal = value;
  clearTimeout(sliding);
  sliding = setTimeout(() => history.replaceState(null, "", address({})), 200); // browsers refuse many changes in a row
  const last = state.tags.at(-1);
  drawTopics();
  const total = modelShown().topics;
  if (value === null || !last || worth(last) < value || state.top >= total) return;
  try { // the slider is below all requested topics
    await tagBy(undefined, Math.min(4 * state.top, total));
    if (state.tags.at(-1) !== last) drawTopics();
  } catch (error) {
    wrong(error);
  }
}

// ---------------------------------------------------------------- files and links

async function readFile(file) {
  if (!file) return;
  if (state.limit !== null && file.size > state.limit) return wrong(new Problem("The file is too large", `${file.name} has ${bytes(file.size)}; the server takes ${bytes(state.limit)} at most.`));
  busy(true);
  try {
    const { zones } = await ask(`text?${new URLSearchParams({ name: file.name })}`, { body: file, type: file.type });
    const text = { title: "", body: "" };
    for (const [zone, words] of Object.entries(zones)) {
      const field = FIELDS[zone] ?? "body";
      text[field] += (text[field] && words ? "\n\n" : "") + words;
    }
    $("error").replaceChildren();
    setText(text);
    notice("Read from ", bdi(file.name), ".");
    if (state.view === "read") await tagNow();
    else go({ view: "read", topic: null });
  } catch (error) {
    wrong(error, () => readFile(file));
  } finally {
    busy(false);
  }
}

async function unpackInto(z) {
  try {
    const [title, body] = await unpack(z);
    for (const [field, text] of Object.entries({ title, body })) $(field).value = text;
    state.z = null;
    const hash = location.hash;
    setText({ title, body });
    history.replaceState(null, "", hash);
    state.z = z;
  } catch (error) {
    history.replaceState(null, "", address({}));
    wrong(error instanceof Problem ? error : new Problem("The link is damaged", "Its text cannot be read."));
  }
}

async function copyLink() {
  const z = empty() ? null : await pack([state.text.title, state.text.body]);
  if (z !== null && z.length > PACKED) return wrong(new Problem("The text is too long for a link", `Compressed, it has ${count(z.length, "character")}; a link holds at most ${counted.format(PACKED)}.`));
  state.z = z;
  history.replaceState(null, "", address({ z }));
  try {
    await navigator.clipboard.writeText(location.href);
    brief("The link is copied; it is also in the address bar.", z ? " It holds the whole text." : "");
  } catch {
    notice("The link is in the address bar.", z ? " It holds the whole text." : "");
  }
}

// ---------------------------------------------------------------- all topics of a model

let listed = null;
async function showTopics(query, offset = 0) {
  const asked = (listed = `${state.model} ${query} ${offset}`);
  if (document.activeElement !== $("query")) $("query").value = query;
  const about = modelShown();
  $("about-model").replaceChildren(bdi(about.model), `: ${count(about.topics, "topic")}, trained on ${count(about.train_documents, "document")}`, ...(about.corpus ? [" of ", bdi(about.corpus)] : []), ".");
  showCard(ask, of(state.model, "card"));
  try {
    const found = await topicsLike({ query, offset, limit: 100 });
    if (asked !== listed) return;
    const made = found.topics.map(({ topic, train_size, threshold }) => node("tr", {}, node("th", { scope: "row" }, node("a", { href: address({ view: "topic", topic, q: null }) }, called(topic))),
      node("td", { class: "number" }, counted.format(train_size)), node("td", { class: "number wide" }, decimal(threshold))));
    if (offset) $("topic-rows").append(...made);
    else $("topic-rows").replaceChildren(...made);
    const n = $("topic-rows").children.length;
    $("topics-found").textContent = found.total ? (n < found.total ? `${counted.format(n)} of ${count(found.total, "topic")}` : count(found.total, "topic")) : `No topic has “${query}” in its id or name.`;
    $("topic-table").hidden = !found.total;
    $("more").hidden = n >= found.total;
    $("more").onclick = () => showTopics(query, n);
  } catch (error) {
    wrong(error, () => showTopics(query, offset));
  }
}

// ---------------------------------------------------------------- one topic

async function showTopic(topic) {
  $("topic-heading").replaceChildren(called(topic));
  $("back").href = address({ view: "topics", topic: null });
  const place = $("topic-page");
  place.replaceChildren();
  try {
    const about = await facts(topic);
    if (!state.tagged && !empty()) await tagNow();
    if (route().topic !== topic || state.view !== "topic") return;
    $("topic-heading").replaceChildren(called(topic)); // its name is known now
    const tag = state.tags.find((other) => other.topic === topic);
    place.replaceChildren(factList(about), node("div", { class: "halves" },
      node("div", {}, node("h2", {}, "Words of largest weight"), termTable(about.terms)),
      node("div", {}, node("h2", {}, "Quality"), qualityTable(about.quality), about.curve ? [node("h2", {}, "From score to probability"), curveFigure(about, tag)] : [])));
  } catch (error) {
    wrong(error, () => showTopic(topic));
  }
}

// ---------------------------------------------------------------- two models

let compared = null;
async function showComparison(here) {
  const names = state.models.map((model) => model.model);
  if (names.length < 2) {
    $("compare-page").replaceChildren(node("p", {}, "The server has only one model. To compare two, start it with ", node("code", {}, "textcat serve MODEL OTHER"), "."));
    return;
  }
  const other = names.includes(here.with) && here.with !== state.model ? here.with : names.find((name) => name !== state.model);
  $("left").value = state.model;
  $("right").value = other;
  for (const option of $("right").options) option.disabled = option.value === state.model;
  if (empty()) {
    $("compare-summary").replaceChildren("There is no text to compare on yet: ", node("a", { href: address({ view: "read", topic: null }) }, "enter one"), " first.");
    $("compare-table").replaceChildren();
    $("panes").replaceChildren();
    return;
  }
  const asked = (compared = {});
  try {
    const both = [state.model, other];
    const answers = await Promise.all(both.flatMap((model) => tagsOf(model, CANDIDATES)));
    if (asked !== compared) return;
    const sides = [0, 2].map((i) => ({
      tags: new Map([...answers[i].tags, ...answers[i + 1].tags].map((tag) => [tag.topic, tag])), given: new Set(answers[i + 1].tags.map((tag) => tag.topic)),
    }));
    drawComparison(sides, both, here.topic);
    await drawPanes(both, here.topic, asked);
  } catch (error) {
    wrong(error, show);
  }
}

function drawComparison(sides, models, chosen) {
  const given = [...new Set(sides.flatMap((side) => [...side.given]))];
  const differs = (topic) => sides[0].given.has(topic) !== sides[1].given.has(topic);
  const most = (topic) => Math.max(...sides.map((side) => side.tags.get(topic)?.probability ?? 0));
  const order = given.sort((x, y) => differs(y) - differs(x) || most(y) - most(x));
  const n = given.filter(differs).length;
  $("compare-summary").textContent = !given.length ? "Neither model gives the text a topic." : n ? `The models agree on ${counted.format(given.length - n)} of ${count(given.length, "topic")}.` : `Both models give the same ${count(given.length, "topic")}.`;
  const rows_ = order.filter((topic) => !$("differ").checked || differs(topic)).map((topic) => {
    const pick = button({ class: "pickable", "aria-pressed": String(topic === chosen), onclick: () => go({ topic: topic === chosen ? null : topic }) }, called(topic));
    return node("tr", { class: differs(topic) ? "differs" : null }, node("th", { scope: "row" }, pick), ...sides.map((side) => sideCell(side, topic)),
      node("td", { class: "badge" }, differs(topic) ? ["only ", bdi(models[sides[0].given.has(topic) ? 0 : 1])] : "both"));
  });
  const focused = document.activeElement.closest?.(".versus button")?.textContent;
  $("compare-table").replaceChildren(rows_.length ? table("versus", [["Topic"], ...models.map((model) => [bdi(model)]), ["Given by"]], rows_) : "");
  if (focused) [...document.querySelectorAll(".versus button")].find((button) => button.textContent === focused)?.focus({ preventScroll: true });
}

function sideCell(side, topic) {
  const tag = side.tags.get(topic);
  if (!tag) return node("td", {}, "–");
  return node("td", {}, shown(tag), tag.probability === null || tag.probability === undefined ? null
    : node("span", { class: side.given.has(topic) ? "bar fill" : "bar", "aria-hidden": "true" }, node("i", { "width%": 100 * tag.probability })));
}

async function drawPanes(models, topic, asked) {
  if (!topic) return $("panes").replaceChildren(node("p", { class: "aside" }, "Select a topic to see the evidence of each model."));
  const answers = await Promise.allSettled(models.map((model) => explain(model, [topic])));
  if (asked !== compared) return null;
  state.term = null;
  return $("panes").replaceChildren(...answers.map((answer, i) => node("section", { class: "pane", "aria-label": `${topic} by ${models[i]}` },
    node("h2", {}, called(topic), " by ", bdi(models[i])), answer.status === "fulfilled" ? pane(answer.value[0]) : node("p", {}, answer.reason.message))));
}

function pane(why) {
  const { title, body } = state.text;
  const text = (field) => marked(state.text[field], pieces(why.reasons, held(field), state.text[field]));
  const words = reasonItems(why.reasons, 8, (_, parts) => node("div", {}, parts));
  return [node("div", { class: "reading", dir: "auto", tabindex: 0, role: "group", "aria-label": "The text with its evidence", onpointermove: tip, onpointerleave: noTip },
    title.trim() ? node("strong", {}, text("title")) : null, body ? text("body") : null), sumLine(why), node("ul", { class: "reasons" }, words)];
}

// ---------------------------------------------------------------- an example, and topics that are missing

// The strongest words of the largest topic: a text that a model of any language knows.
async function example() {
  try {
    const { topics } = await topicsLike({ limit: 1000 });
    const { topic } = topics.reduce((largest, other) => (other.train_size > largest.train_size ? other : largest));
    const { terms } = await facts(topic);
    const words = terms.filter(({ term, weight }) => weight > 0 && /^[\p{L} ]+$/u.test(term)).map(({ term }) => term);
    setText({ body: [...new Set(words)].join(" ") });
    brief("These are words that speak for ", called(topic), ", the topic with most training documents.");
    await tagNow();
    $("body").focus();
  } catch (error) {
    wrong(error, example);
  }
}

async function addMissing() {
  const wanted = $("missing").value.trim();
  if (!wanted || empty()) return $("missing").focus();
  try {
    const { topics } = await topicsLike({ query: wanted, limit: 1000 });
    const same = ({ topic, name }) => [topic, name].some((words) => words?.toLowerCase() === wanted.toLowerCase());
    const found = topics.find(same) ?? (topics.length === 1 ? topics[0] : null);
    if (!found) return wrong(new Problem("No such topic", topics.length ? `${count(topics.length, "topic")} have “${wanted}” in their names, such as ${nameOf(topics[0].topic)}: write the whole name.` : `The model has no topic “${wanted}”.`));
    collected.tell(content(), found.topic, true);
    $("missing").value = "";
    $("error").replaceChildren();
    brief("The text belongs to ", called(found.topic), ": noted.");
  } catch (error) {
    wrong(error, addMissing);
  }
  return null;
}

// ---------------------------------------------------------------- start

function choices(select) {
  select.replaceChildren(...state.models.map(({ model }) => node("option", { value: model }, model)));
}

async function start() {
  try {
    const found = await ask("models");
    state.models = found.models;
    state.limit = found.limits?.bytes ?? null;
    state.documents = found.limits?.documents ?? 100;
    for (const { model, version } of found.models) seen(model, version);
    for (const id of ["model", "left", "right"]) choices($(id));
    state.model = null;
    if (!state.models.length) throw new Problem("No model", "The server has no model.");
    drawSize();
    collected.start(found);
    await show();
  } catch (error) {
    wrong(error, start);
  }
}

for (const field of ["title", "body"]) {
  on(field, "input", () => { changed(); tagSoon(); });
  on(field, "pointermove", tip);
  on(field, "pointerleave", noTip);
}
on("title", "keydown", (event) => event.key === "Enter" && !event.isComposing && (event.preventDefault(), $("body").focus()));
on("skip", "click", (event) => { event.preventDefault(); $("main").focus(); });
on("model", "change", () => go({ model: $("model").value, with: null, min: null, ...(state.view === "topic" ? { view: "topics", topic: null } : {}) }));
on("left", "change", () => go({ model: $("left").value, with: $("right").value === $("left").value ? state.model : $("right").value }));
on("right", "change", () => go({ with: $("right").value }));
on("differ", "change", show);
on("minimal", "input", () => setMinimal(Number($("minimal").value)));
on("minimal-reset", "click", () => { setMinimal(null); $("minimal").focus(); });
on("query", "input", () => { clearTimeout(timer); timer = setTimeout(() => go({ q: $("query").value }, true), 150); });
on("open", "click", () => $("file").click());
on("file", "change", () => { readFile($("file").files[0]); $("file").value = ""; });
on("link", "click", copyLink);
on("clear", "click", () => { setText({}); go({ topic: null }, true); tagNow(); $("body").focus(); });
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || state.view !== "read" || state.pinned === null) return;
  const row = rows.get(state.pinned)?.firstChild; // the focus goes to the row, not to the page, if it was in its details
  const inside = row?.parentNode.contains(document.activeElement);
  go({ topic: null });
  if (inside && row.isConnected) row.focus({ preventScroll: true });
});
on("unfold", "click", () => { state.unfolded = !state.unfolded; drawTopics(); });
on("example", "click", example);
on("missing-form", "submit", (event) => { event.preventDefault(); addMissing(); });
addEventListener("popstate", show);
document.addEventListener("visibilitychange", () => { // the model may have been replaced meanwhile
  if (!document.hidden && state.models.length) ask("models").then(({ models }) => models.forEach(({ model, version }) => seen(model, version))).catch(() => {});
});
const holdsFile = (event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragover", (event) => { if (holdsFile(event)) { event.preventDefault(); document.body.classList.add("dropping"); } });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
addEventListener("drop", (event) => {
  if (!holdsFile(event)) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  readFile(event.dataTransfer.files[0]);
});
start();
