// The page of `textcat review`: a document, its tags, and what a person says of each. Data of the server is only put
// into text nodes. The address holds the view: #view=review or #view=audit.

import { $, Problem, ask, bdi, button, count, counted, message, node, on, percent, table } from "./common.js";
import { drawPerson, drawTexts, focusDocument, handleDialogs, heading, instead, showDocument, showError } from "./people.js";
import { record } from "./screening.js";

const VIEWS = ["review", "audit"];
const TERMS = 60;      // terms that are marked in the text
const WAIT = 200;      // milliseconds after which a search for topics begins

const state = { about: null, view: null, now: null, answered: 0, told: new Map(), chosen: null, reasons: new Map(), busy: false };

// ---------------------------------------------------------------- the server, and messages

const sent = (path, options) => ask(`review${path}`, { ...options, match: state.about?.session });
async function call(path, options) {
  const found = await sent(path, options);
  $("error").replaceChildren();
  return found;
}
const get = (path, values) => call(`/${path}?${new URLSearchParams(values)}`);
// What is asked besides, not by an action of the person: the error of the last action stays.
const getBeside = (path, values) => sent(`/${path}?${new URLSearchParams(values)}`);
const say = (words) => { $("said").textContent = words; };

function wrong(error) {
  if (error.name !== "AbortError") showError(error, start);
}

const tried = (action) => async (...given) => {
  try {
    return await action(...given);
  } catch (error) {
    wrong(error);
    return undefined;
  }
};

// ---------------------------------------------------------------- the address

const show = tried(async () => {
  if (!state.about) return;
  const wanted = new URLSearchParams(location.hash.slice(1)).get("view");
  const view = VIEWS.includes(wanted) ? wanted : "review";
  const before = state.view;
  state.view = view;
  for (const each of VIEWS) {
    $(each).hidden = each !== view;
    if (each === view) $(`to-${each}`).setAttribute("aria-current", "page");
    else $(`to-${each}`).removeAttribute("aria-current");
  }
  document.title = `${view === "audit" ? "Audit" : "Review"} · textcat`;
  drawPerson(state);
  if (before && before !== view) {
    scrollTo(0, 0);
    $(`${view}-heading`).focus({ preventScroll: true });
  }
  if (view === "audit") await showAudit();
  else if (state.now) draw();
  else take(await get("next", { person: state.person ?? "" }));
});

// ---------------------------------------------------------------- a document

function take({ document: found, answered }) {
  Object.assign(state, { now: found, answered, told: new Map(), reasons: new Map(), chosen: found?.tags.find((tag) => tag.is_asked)?.topic ?? null });
  $("note").value = $("missing").value = "";
  draw();
  if (found) showDocument();
}

const nameOf = ({ topic, name }) => name ?? topic;

function draw() {
  const { now, about } = state;
  const left = about.open - about.documents;
  $("sample").hidden = !about.is_sample;
  $("progress").textContent = `${counted.format(state.answered)} of ${count(about.documents, "document")} answered${left > 0 ? `; ${counted.format(left)} more of the archive wait for the next queue` : ""}.`;
  for (const id of ["reading", "tags-box"]) $(id).hidden = !now;
  $("nothing").hidden = Boolean(now);
  if (!now) {
    $("nothing").replaceChildren(node("p", {}, "No document is left for you in this queue."), node("p", {}, left > 0 ? "Start the command again for the next documents. " : "", node("a", { href: "#view=audit" }, "See how often automatic tags are right"), "."));
    return;
  }
  drawTags();
  drawText();
  $("document-record").replaceChildren(...record(now.fields));
  $("document-id").replaceChildren("Document ", bdi(now.id), now.date ? `, ${now.date.slice(0, 10)}` : "");
  $("earlier").replaceChildren(...(now.earlier.length ? [node("ul", {}, now.earlier.map((each) => node("li", {}, bdi(each.person || "Someone without a name"), ": ", Object.entries(each.answers).flatMap(([topic, belongs], i) => [i ? ", " : "", bdi(topic), belongs ? " yes" : " no"]), Object.keys(each.answers).length ? "" : "skipped", each.note ? [" “", bdi(each.note), "”"] : null)))] : []));
}

function added() {
  return [...state.told.keys()].filter((topic) => !state.now.tags.some((tag) => tag.topic === topic)).map((topic) => ({ topic, name: null, probability: null, status: null, is_asked: true, is_added: true }));
}

const asked = () => [...state.now.tags.filter((tag) => tag.is_asked), ...added()];

function drawTags() {
  const focused = document.activeElement?.dataset?.at;
  $("tags").replaceChildren(...asked().map(row));
  const given = state.now.tags.filter((tag) => !tag.is_asked);
  $("given-box").hidden = !given.length;
  $("given").replaceChildren(...given.map(row));
  if (focused) [...document.querySelectorAll("[data-at]")].find((button) => button.dataset.at === focused)?.focus({ preventScroll: true });
}

function row(tag) {
  const { topic, probability, is_audited, is_added } = tag;
  const about = [probability === null ? null : percent(probability), is_audited ? "drawn for the audit" : null, is_added ? "added by you" : null].filter(Boolean).join(" · ");
  const told = state.told.get(topic);
  const side = (belongs, word) => button({ class: belongs ? "yes" : "no", "aria-pressed": String(told === belongs), "data-at": `${topic} ${word}`, onclick: () => tell(topic, told === belongs ? null : belongs) }, word);
  return node("li", { class: state.chosen === topic ? "chosen" : null },
    button({ class: "pick-tag", "aria-pressed": String(state.chosen === topic), "data-at": `${topic} words`, onclick: () => choose(topic) }, bdi(nameOf(tag)), about ? node("span", {}, about) : null),
    node("span", { class: "choose", role: "group", "aria-label": nameOf(tag) }, side(true, "Yes"), side(false, "No")));
}

function tell(topic, belongs) {
  if (belongs === null) state.told.delete(topic);
  else state.told.set(topic, belongs);
  drawTags();
}

function choose(topic) {
  state.chosen = topic;
  drawTags();
  drawText();
}

// Answer for the chosen topic by a key, and choose the next one that has no answer.
function judge(belongs) {
  if (!state.chosen) return;
  const word = belongs ? "yes" : "no";
  state.told.set(state.chosen, belongs);
  const open = asked().map(({ topic }) => topic).filter((topic) => !state.told.has(topic));
  say(`${state.chosen}: ${word}. ${open.length ? `Next: ${open[0]}` : "Enter saves."}`);
  if (open.length) state.chosen = open[0];
  drawTags();
  drawText();
}

function rejectRest() {
  const open = asked().map(({ topic }) => topic).filter((topic) => !state.told.has(topic));
  for (const topic of open) state.told.set(topic, false);
  say(`No to ${count(open.length, "topic")}. Enter saves.`);
  drawTags();
}

function step(by) {
  const topics = [...asked(), ...state.now.tags.filter((tag) => !tag.is_asked)].map(({ topic }) => topic);
  const at = topics.indexOf(state.chosen);
  choose(topics[Math.min(Math.max(at + by, 0), topics.length - 1)]);
  say(state.chosen);
}

// ---------------------------------------------------------------- the text, with the words for and against a topic

function drawText() {
  const { now, chosen } = state;
  drawTexts(now, state.reasons.get(chosen) ?? []);
  if (chosen && !state.reasons.has(chosen)) explain(now.number, chosen);
}

const explain = tried(async (number, topic) => {
  state.reasons.set(topic, []);
  const found = await getBeside("evidence", { number, topic, n: TERMS });
  if (number !== state.now?.number) return;
  state.reasons.set(topic, found.reasons ?? []);
  if (topic === state.chosen) drawText();
});

// ---------------------------------------------------------------- answers

// Send one answer at a time: a key that is pressed twice must not answer the next document unseen.
async function sending(action) {
  if (state.busy) return;
  state.busy = true;
  $("reading").classList.add("old");
  try {
    await action();
  } catch (error) {
    wrong(error);
  } finally {
    state.busy = false;
    $("reading").classList.remove("old");
  }
}

const save = (answers, isComplete = false) => sending(async () => {
  const { now } = state;
  if (!now) return;
  const found = await call("/answer", { json: { number: now.number, answers, note: $("note").value, person: state.person ?? "", is_complete: isComplete } });
  const said = Object.keys(answers).length;
  take(found);
  say(`${said || isComplete ? `Saved ${count(said, "topic")}` : "Skipped"}: ${heading(now)}. ${found.document ? `Next: ${heading(found.document)}` : "No document is left."}`);
});

function saveTold() {
  if (state.about.is_sample) {
    const open = asked().filter(({ topic }) => !state.told.has(topic));
    if (open.length) choose(open[0].topic);
    if (open.length) return say(`${count(open.length, "tag")} without an answer: judge all, then save.`);
    return save(Object.fromEntries(state.told), true);
  }
  if (state.told.size) return save(Object.fromEntries(state.told));
  return say("Nothing is judged yet: y or n judges the chosen topic, s skips the document.");
}

const undo = () => sending(async () => {
  const found = await call("/undo", { json: { person: state.person ?? "" } });
  if (!found.undone) return message($("notice"), false, node("p", {}, "You have no answer to undo."));
  if (state.view !== "review") history.pushState(null, "", "#view=review");
  take(found);
  await show();
  return say(`Taken back. ${found.document ? heading(found.document) : ""}`);
});

const add = tried(async () => {
  const wanted = $("missing").value.trim();
  if (!wanted || !state.now) return $("missing").focus();
  const { topics } = await get("topics", { query: wanted, n: 200 });
  const exact = topics.find((each) => [each.topic, each.name].some((word) => word?.toLowerCase() === wanted.toLowerCase()));
  if (!exact && state.about.topics) throw new Problem("No such topic", `No topic is called “${wanted}”: choose one of those that are listed while you type.`);
  $("missing").value = "";
  const topic = exact?.topic ?? wanted;
  state.told.set(topic, true);
  choose(topic);
  return say(`${topic}: added.`);
});

let waiting = 0;
function searchTopics() {
  clearTimeout(waiting);
  waiting = setTimeout(tried(async () => {
    const { topics } = await getBeside("topics", { query: $("missing").value.trim() });
    $("topics").replaceChildren(...topics.map(({ topic, name }) => node("option", { value: name ?? topic })));
  }), WAIT);
}

// ---------------------------------------------------------------- the audit

async function showAudit() {
  const { rows } = await call("/audit");
  const groups = [["All", "tags", (r) => !r.topic && !r.month, () => "All automatic tags"], ["By topic", "topic", (r) => r.topic && !r.month, (r) => r.topic], ["By month", "month", (r) => !r.topic && r.month, (r) => r.month]];
  $("audit-page").replaceChildren(...(rows.length ? groups.map(([caption, kind, wanted, name]) => figures(caption, kind, rows.filter(wanted), name)) : [node("p", {}, "None was judged yet. Start ", node("code", {}, "textcat review"), " with ", node("code", {}, "--audit .02"), " to draw one in fifty.")]));
}

const COLUMNS = [["judged", "number"], ["right", "number wide"], ["precision", "number"], ["95 % interval", "interval"]];

function figures(caption, kind, rows, name) {
  const cells = (r) => [counted.format(r.judged), counted.format(r.right), percent(r.precision), `${percent(r.low)} to ${percent(r.high)}`];
  const made = table(null, [[kind], ...COLUMNS], rows.map((r) => node("tr", {}, node("th", { scope: "row" }, bdi(name(r))), cells(r).map((cell, i) => node("td", { class: COLUMNS[i][1] }, cell)))));
  made.prepend(node("caption", {}, caption));
  return made;
}

// ---------------------------------------------------------------- who, and keys

const askName = handleDialogs(state, show);
const ACTIONS = { y: () => judge(true), n: () => judge(false), j: () => step(1), k: () => step(-1), s: () => save({}), r: rejectRest, u: undo, a: () => $("missing").focus(), c: () => $("note").focus(), enter: saveTold, "?": () => $("help").showModal() };
const ANYWHERE = ["u", "?"];

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && typing) return focusDocument();
  const key = event.key.toLowerCase(); // also with caps lock on
  const action = ACTIONS[key];
  if (!action || typing || !state.keys || (key === "enter" && event.target.closest?.("button, a, summary"))) return undefined;
  if (!ANYWHERE.includes(key) && (state.view !== "review" || !state.now)) return undefined;
  event.preventDefault();
  return action();
});

on("save", "click", saveTold);
on("rest", "click", rejectRest);
on("skip-it", "click", () => save({}));
on("undo", "click", undo);
on("missing", "input", searchTopics);
on("missing-form", "submit", instead(add));
addEventListener("popstate", show);
addEventListener("hashchange", show);

const start = tried(async () => {
  state.about = await call("");
  if (state.about.person) state.person = state.about.person;
  if (state.person === null) askName(); // ask for the name before the first document
  else await show();
});
start();
