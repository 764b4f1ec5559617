// The teaching page: a document, an answer, the next document. Data of the server is only put into text nodes.
// The address holds the state of the page: #view=judge&topic=strikes (&at=17: a document that was looked up; &list=… its list).

import { $, Problem, ask, bdi, button, clamp, count, counted, label, message, node, on, percent, signed, stored, swings, table } from "./common.js";
import { groupEntries } from "./duplicates.js";
import { drawPerson, drawTexts, focusDocument, handleDialogs, heading, instead, kept, showDocument, showError } from "./people.js";
import { countsTable, criteria, exclusions, record } from "./screening.js";

const VIEWS = ["judge", "search", "judged", "duplicates", "people", "topics"];
const TERMS = 60;      // terms that are marked in the text
const LISTED = 10;     // terms that are listed
const FEW = 4;         // with more other topics, their list is closed at first
const PAGE = 50;       // entries of a list per request
const DISAGREE = "people disagree"; // the list of disagreements
const WORDS = { yes: "yes", no: "no", skip: "skipped" };

const state = {
  about: null, topic: null, view: null, now: null, busy: false, evidence: null, progress: null,
  target: 0.95, stopped: new Set(), list: null, entries: [], passed: new Set(), examples: new Map(),
};

// ---------------------------------------------------------------- the server, and messages

async function teach(path, options) {
  const found = await ask(`teach${path}`, { ...options, match: state.about?.session });
  if (state.lost || options?.json) $("error").replaceChildren(); // the error is over
  state.lost = false;
  return found;
}
const get = (path, values) => teach(`/${path}?${new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== undefined))}`);
const notice = (...content) => message($("notice"), false, node("p", {}, ...content));
const say = (words) => { $("said").textContent = words; };

function wrong(error, again = null) {
  if (error.name === "AbortError") return;
  state.lost = error instanceof Problem && !error.status;
  showError(error, start, again);
}

const tried = (action) => async (...given) => {
  try {
    return await action(...given);
  } catch (error) {
    wrong(error, () => tried(action)(...given));
    return undefined;
  }
};

// ---------------------------------------------------------------- the address

function route() {
  const given = new URLSearchParams(location.hash.slice(1));
  const found = { view: VIEWS.includes(given.get("view")) ? given.get("view") : "judge" };
  for (const key of ["topic", "at", "list", "q", "answer", "by"]) found[key] = given.get(key);
  return found;
}

const address = (wanted) => `#${new URLSearchParams(Object.entries({ topic: state.topic, ...wanted }).filter(([, value]) => value !== null && value !== undefined && value !== ""))}`;

function go(wanted, replace = false) {
  const hash = address(wanted);
  if (hash !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", hash);
  return show();
}

const known = (topic) => state.about.topics.find((each) => each.topic === topic);

// Show what the address says.
const show = tried(async () => {
  if (!state.about) return;
  const here = route();
  const names = state.about.topics.map(({ topic }) => topic);
  if (here.topic !== null && !names.includes(here.topic)) wrong(new Problem("No such topic", `This session has no topic “${here.topic}”.`));
  const topic = names.includes(here.topic) ? here.topic : names.includes(state.topic) ? state.topic : names[0] ?? null;
  if (topic !== state.topic) Object.assign(state, { topic, now: null, progress: null });
  const view = topic === null ? "topics" : here.view;
  const before = state.view;
  if (before && before !== view) $("error").replaceChildren();
  state.view = view;
  for (const each of VIEWS) {
    $(each).hidden = each !== view;
    $(`to-${each}`).href = address({ view: each });
    if (each === view) $(`to-${each}`).setAttribute("aria-current", "page");
    else $(`to-${each}`).removeAttribute("aria-current");
  }
  const titles = { judge: "Judge", search: "Search", judged: "Judged", duplicates: "Duplicates", people: "People", topics: "Topics" };
  document.title = [titles[view], topic, "textcat"].filter(Boolean).join(" · ");
  drawHead();
  if (before && before !== view) {
    scrollTo(0, 0);
    if (view === "search") $("query").focus({ preventScroll: true });
    else if (view !== "judge") $(`${view}-heading`).focus({ preventScroll: true });
  }
  if (view === "judge") await showQuestion(here, before !== view);
  else if (view === "search") await showSearch(here.q ?? "");
  else if (view === "judged") await showJudged(here);
  else if (view === "duplicates") await showDuplicates();
  else if (view === "people") await showPeople();
  else await showTopics();
});

function drawHead() {
  $("to-duplicates").hidden = !state.about.duplicates && state.view !== "duplicates";
  $("pick-topic").hidden = !state.about.topics.length;
  $("topic").replaceChildren(...state.about.topics.map(({ topic }) => node("option", { value: topic, selected: topic === state.topic }, topic)));
  $("topic").value = state.topic ?? "";
  drawPerson(state);
}

async function refresh() {
  state.about = await teach("");
  if (state.about.person) state.person = state.about.person;
}

// ---------------------------------------------------------------- the question

// Show the document that the address names: one of a list, one that was looked up, or else the server's next question.
let showing = null;
async function showQuestion(here, entered) {
  const mine = (showing = {});
  const about = known(state.topic);
  $("judge-heading").replaceChildren("Is this about ", bdi(state.topic), "?");
  const words = [about.description, about.query && `Query: ${about.query}`].filter(Boolean).join(" · ");
  $("about-topic").hidden = !words;
  $("about-topic").textContent = words;
  $("criteria").replaceChildren(...criteria(about.criteria));
  $("exclusions").replaceChildren(...exclusions(about.exclusion_reasons, (reason) => answer("no", reason)));
  state.list = here.list;
  if (here.at !== null || here.list !== null || state.now?.source !== "asked") {
    state.now = null; // a document that is not shown yet takes no answer
    $("reading").classList.add("old");
  }
  if (here.at !== null) {
    const found = await get("document", { position: here.at, topic: state.topic });
    if (mine !== showing) return;
    draw({ ...found, source: here.list === DISAGREE ? "adjudicated" : here.list !== null ? "list" : "search", why: null }, entered);
  } else if (here.list !== null) await nextOfList();
  else if (state.now) draw(state.now, entered);
  else {
    const found = await get("question", { topic: state.topic, person: state.person ?? "", all_topics: asksAll() });
    if (mine !== showing) return;
    if (found.question && found.question.topic !== state.topic) return moveTo(found, entered);
    draw(asked(found), entered);
  }
  drawProgress();
}

const mayAskAll = () => state.about.topics.length > 1 && state.about.topics.every(({ strategy }) => strategy === "uncertain");
const asksAll = () => $("all").checked && mayAskAll();

// Show a question about another topic.
async function moveTo(found, focus) {
  Object.assign(state, { topic: found.question.topic, progress: null, evidence: null, now: asked(found) });
  $("note").value = "";
  await go({ view: "judge" }, true);
  if (focus) showDocument();
}

function asked({ question, counts }) {
  const about = known(question?.topic ?? state.topic);
  if (about) about.counts = counts;
  return question && { ...question, source: "asked", judgements: [] };
}

function draw(question, focus = true) {
  const other = question?.position !== state.now?.position || question?.source !== state.now?.source;
  state.now = question;
  $("reading").classList.remove("old");
  $("reading").hidden = !question;
  $("nothing").hidden = Boolean(question);
  $("words-box").hidden = !question;
  if (!question) return drawNothing();
  if (other) {
    state.evidence = null;
    $("note").value = "";
  }
  drawWhy(question);
  drawText();
  drawEarlier(question.judgements);
  drawAlso(question.answers ?? {});
  if (focus) showDocument();
  explain();
  return null;
}

function drawNothing() {
  const link = (view, words) => node("a", { href: address({ view }) }, words);
  $("nothing").replaceChildren(node("p", {}, state.list ? "All of this list is judged." : "All documents are judged."),
    node("p", {}, state.list ? node("a", { href: address({ view: "judge" }) }, "Continue with questions") : link("judged", "Look through judged documents"), " or ", link("topics", "export it"), "."));
}

const REASONS = {
  "highest score": (q) => ["Shown because ", node("b", {}, "it scores highest"), ` of those not judged.`],
  uncertain: (q) => ["Shown because the ranker is ", node("b", {}, "least certain"), ` about it (rank ${counted.format(q.rank)}).`],
  "at random": (q) => ["Chosen ", node("b", {}, "at random"), `, to estimate how many are still to be found (rank ${counted.format(q.rank)}).`],
  "taken back": () => [node("b", {}, "Taken back:"), " your answer to this document no longer counts."],
};

function drawWhy(question) {
  const { source, why, duplicates } = question;
  const parts = source === "asked" ? (REASONS[why]?.(question) ?? ["Shown because: ", why, "."])
    : source === "adjudicated" ? ["People disagree on this document: ", node("b", {}, "your answer overrides theirs.")]
      : source === "list" ? ["From the list ", node("b", {}, bdi(state.list)), labelled(question)]
        : ["Not asked for, but your answer trains the ranker, too. ", node("a", { href: address({ view: "judge" }) }, "Back to the question")];
  if (duplicates?.length) parts.push(` ${count(duplicates.length, "near-duplicate")} ${duplicates.length === 1 ? "gets" : "get"} the same answer: `, node("a", { href: address({ view: "duplicates" }) }, "see all duplicates"), ".");
  $("why").replaceChildren(...parts);
}

function labelled(question) {
  const entry = state.entries.find((each) => each.position === question.position);
  if (!entry || entry.labelled === null) return ".";
  return entry.labelled ? ": it has the label, probably wrongly." : ": it does not have the label, but probably should.";
}

function drawText() {
  const { position, fields, id } = state.now;
  drawTexts(state.now, state.evidence?.position === position ? state.evidence.reasons : []);
  $("document-record").replaceChildren(...record(fields));
  $("document-id").replaceChildren("Document ", bdi(id));
}

function drawEarlier(judgements) {
  const own = judgements ?? [];
  $("earlier").replaceChildren(...(own.length ? [node("ul", {}, own.map((each) => node("li", {}, given(each.answer), " by ", bdi(each.person || "someone without a name"), ` ${when(each.at)}`, each.exclusion_reason ? [": ", bdi(each.exclusion_reason)] : null, each.note ? [": “", bdi(each.note), "”"] : null)))] : []));
}

const given = (answer) => node("span", { class: `given ${answer}` }, WORDS[answer] ?? answer);
const when = (at) => (at ? new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }) : "");

function drawAlso(answers) {
  const others = state.about.topics.filter(({ topic }) => topic !== state.topic);
  if ($("also").hidden && others.length > FEW) $("also").open = false;
  $("also").hidden = !others.length;
  $("all-box").hidden = !mayAskAll();
  if (asksAll()) $("also").open = true;
  $("also-topics").replaceChildren(...others.map(({ topic }) => {
    const select = node("select", { "data-topic": topic }, [["", "not judged"], ["yes", "yes"], ["no", "no"]].map(([value, words]) => node("option", { value, selected: (answers[topic] ?? "") === value }, words)));
    return node("label", {}, bdi(topic), select);
  }));
}

async function explain() {
  const { topic, now } = state;
  if (!now || now.position === state.evidence?.position) return;
  try {
    const found = await get("evidence", { topic, position: now.position, n: TERMS });
    if (topic !== state.topic || now.position !== state.now?.position) return;
    state.evidence = found;
    drawText();
    drawWords();
  } catch (error) {
    wrong(error, explain);
  }
}

// ---------------------------------------------------------------- answers

async function answer(word, reason = "") {
  const { now, topic } = state;
  if (!now || state.busy) return;
  const others = Object.fromEntries([...$("also-topics").querySelectorAll("select")].filter((select) => select.value && select.value !== now.answers?.[select.dataset.topic]).map((select) => [select.dataset.topic, select.value]));
  const byButton = ["answers", "exclusions"].some((id) => $(id).contains(document.activeElement)) && document.activeElement.tagName === "BUTTON";
  if (now.source === "adjudicated" && word === "skip") return nextOfList(now.position);
  await sending(async () => {
    const found = await teach("/answer", { json: { topic, position: now.position, answer: word, person: state.person ?? "", source: now.source, note: $("note").value, exclusion_reason: reason, others, ask: now.source === "asked", all_topics: asksAll() } });
    if (topic !== state.topic) return;
    const next = asked(found);
    const title = heading(now);
    $("notice").replaceChildren();
    if (now.source === "asked") {
      if (next && next.topic !== topic) await moveTo(found, !byButton);
      else draw(next, !byButton);
      say(`${WORDS[word]}: ${title}. ${next ? `Next: ${heading(next)}` : "No document is left."}`);
    } else {
      say(`${WORDS[word]}: ${title}.`);
      state.now = null;
      if (state.list !== null) await nextOfList(now.position);
      else {
        await go({ view: "judge" });
        notice("Your answer on “", bdi(title), "” is saved. This is the next question.");
      }
    }
    drawProgress();
  });
}

// Send one change at a time: a key that is pressed twice must not answer the next document unseen.
async function sending(action) {
  state.busy = true;
  $("reading").classList.add("old");
  let told = false;
  const slow = setTimeout(() => { told = true; notice("The server has not answered for five seconds; still waiting."); }, 5000);
  try {
    await action();
  } catch (error) {
    wrong(error);
    state.lost = false; // even if the server answers again, this change may be lost
  } finally {
    clearTimeout(slow);
    if (told) $("notice").replaceChildren();
    state.busy = false;
    $("reading").classList.remove("old");
  }
}

async function undo() {
  if (state.busy) return;
  await sending(async () => {
    const found = await teach("/undo", { json: { topic: state.topic, person: state.person ?? "" } });
    if (found.undone === null) return notice("You have no answer to undo.");
    if (!found.undone.length) {
      await refresh();
      drawKeywords();
      await (state.view === "judge" ? explainAgain() : show());
      return say("The last split or keyword was taken back.");
    }
    const [{ topic, title }] = found.undone;
    if (topic !== state.topic) {
      history.pushState(null, "", `#${new URLSearchParams({ view: "judge", topic })}`);
      state.topic = topic;
      drawHead();
    } else if (route().at !== null || route().list !== null || state.view !== "judge") history.pushState(null, "", address({ view: "judge" }));
    state.now = asked(found);
    await refresh();
    await show();
    focusDocument();
    say(`Taken back: ${title}.`);
    return null;
  });
}

// Show the documents of a list one after the other, without those that the person has judged.
async function nextOfList(after = null) {
  const name = state.list;
  if (name === DISAGREE) {
    const found = await get("agreement", { topic: state.topic });
    state.entries = found.disagreements;
  } else {
    const found = await get("queue", { name, person: state.person ?? "" });
    if (found.topic !== state.topic) return go({ view: "judge", topic: found.topic, list: name }, true);
    state.entries = found.documents.filter((each) => !each.answer);
  }
  if (after === null) state.passed.clear();
  else state.passed.add(after);
  const next = state.entries.find(({ position }) => !state.passed.has(position));
  if (!next) return draw(null);
  return go({ view: "judge", list: name, at: next.position }, after === null);
}

// ---------------------------------------------------------------- words

function drawWords() {
  const reasons = state.evidence.reasons.filter(({ contribution }) => contribution).slice(0, LISTED);
  const bars = swings(reasons.map(({ contribution }) => contribution));
  const keywords = known(state.topic).keywords;
  $("words").replaceChildren(reasons.length ? node("ul", { class: "speaking" }, reasons.map(({ term, contribution }, i) => {
    const words = plain(term);
    return node("li", {}, node("span", {}, bdi(words), node("span", { class: "unseen" }, ` ${signed(contribution)}`)), bars[i],
      node("span", { class: "sides", role: "group", "aria-label": `“${words}” speaks` }, side(words, true, keywords[words]), side(words, false, keywords[words])));
  })) : node("p", { class: "aside" }, "There is no evidence for its words yet."));
  drawKeywords();
}

const plain = (term) => term.replace(/^\w+:(?=.)/, "");

function side(term, speaksFor, marked_) {
  const pressed = marked_ === speaksFor;
  return button({ class: speaksFor ? "pro" : "con", "aria-pressed": String(pressed), "data-term": `${term} ${speaksFor}`, onclick: () => setKeyword(term, pressed ? null : speaksFor) }, speaksFor ? "for" : "against");
}

function drawKeywords() {
  const keywords = Object.entries(known(state.topic).keywords);
  $("keywords").replaceChildren(...(keywords.length ? [node("h3", {}, "Keywords"), node("ul", { class: "chips" }, keywords.map(([term, speaksFor]) => node("li", {}, button({ class: speaksFor ? "pro" : "con", onclick: () => setKeyword(term, null) }, bdi(term), speaksFor ? " for " : " against ", node("span", { class: "unseen" }, "the topic: remove the keyword"), node("span", { "aria-hidden": "true" }, "×")))))] : []));
}

const setKeyword = tried(async (term, speaksFor) => {
  const focused = document.activeElement?.dataset?.term;
  const found = await teach("/keyword", { json: { topic: state.topic, term, speaks_for: speaksFor, person: state.person ?? "" } });
  known(state.topic).keywords = found.keywords;
  say(speaksFor === null ? `${term} is no longer a keyword.` : `${term} speaks ${speaksFor ? "for" : "against"} the topic.`);
  await explainAgain();
  if (focused) [...document.querySelectorAll("[data-term]")].find((button) => button.dataset.term === focused)?.focus({ preventScroll: true });
  else if (document.activeElement === document.body) $("words-heading").focus({ preventScroll: true }); // its button is gone
  drawProgress();
});

async function explainAgain() {
  state.evidence = null;
  await explain();
}

function addWord(speaksFor) {
  const word = $("word").value.trim();
  if (!word) return $("word").focus();
  $("word").value = "";
  return setKeyword(word, speaksFor);
}

// ---------------------------------------------------------------- progress

let measuring = null;
async function drawProgress() {
  const asked_ = (measuring = {});
  const { topic, target } = state;
  try {
    const found = await get("progress", { topic, target });
    if (asked_ !== measuring || topic !== state.topic) return;
    state.progress = found;
    $("progress").replaceChildren(...progress(found));
    if (found.estimate?.more === 0 && !state.stopped.has(topic)) {
      state.stopped.add(topic);
      say(found.advice);
    } else if (found.estimate?.more !== 0) state.stopped.delete(topic);
  } catch (error) {
    wrong(error, drawProgress);
  }
}

const minutes = (n) => (n < 1.5 ? "a minute" : n < 90 ? `${Math.round(n)} minutes` : `${(n / 60).toFixed(1).replace(".0", "")} hours`);

function progress(found) {
  const { counts, target, pace, band, advice } = found;
  const judged = counts.yes + counts.no;
  const parts = [node("p", { class: "big" }, node("b", {}, counted.format(found.found)), ` found in ${count(judged, "answer")}`)];
  const more = found.estimate?.more;
  const time = more && counts.yes && pace ? ` That takes about ${minutes(more / pace)}.` : "";
  parts.push(node("p", { class: more === 0 ? "stop" : "more" }, advice, time));
  if (found.about_band) parts.push(node("p", { class: "more aside" }, found.about_band));
  parts.push(gain(found));
  const numbers = [];
  if (band) {
    const { recall, low, high, relevant } = band.estimate;
    numbers.push(["Share found", `${percent(recall)} (${percent(low)} to ${percent(high)})`], ["In the archive", `about ${counted.format(Math.round(relevant))}`]);
  }
  numbers.push(["Judged", `${counted.format(counts.yes)} yes, ${counted.format(counts.no)} no, ${counted.format(counts.skip)} skipped`], ["Pace", pace ? `${pace < 9.95 ? pace.toFixed(1) : Math.round(pace)} a minute` : "not known yet"], ["Not judged", counted.format(found.open)]);
  parts.push(node("dl", { class: "numbers" }, numbers.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)])));
  const choose = node("select", { id: "target", onchange: () => { state.target = Number($("target").value); kept("target", state.target); drawProgress(); } }, [0.8, 0.9, 0.95, 0.99].map((value) => node("option", { value, selected: value === target }, percent(value))));
  parts.push(node("p", { class: "goal" }, node("label", { for: "target" }, "Find at least"), choose));
  if (document.activeElement?.id === "target") setTimeout(() => $("target").focus());
  return parts;
}

// The gain curve: the documents found after each answer; the band is the estimated total.
function gain(about) {
  const { curve, found } = about;
  const estimate = about.band?.estimate;
  const [W, H, L, B, T] = [380, 190, 34, 26, 10];
  const last = curve.at(-1);
  const answers = Math.max(last[0], 10);
  const total = estimate && estimate.relevant > 0 ? Math.max(estimate.relevant, found) : null;
  const least = estimate?.high > 0 ? Math.max(found, found / estimate.high) : found;
  const most = estimate?.low > 0 ? found / estimate.low : Infinity;
  const top = Math.max(5, found * 1.1, total === null ? 0 : Math.max(total * 1.15, Math.min(most * 1.05, total * 1.6)));
  const x = (n) => L + ((W - L - 8) * n) / answers;
  const y = (n) => T + (H - B - T) * (1 - clamp(n / top, 0, 1));
  const path = curve.map(([n, value], i) => `${i ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const rect = estimate && least < top ? [node("path", { class: "band", d: `M${L} ${y(least)}H${W - 8}V${y(most)}H${L}Z` })] : [];
  const line = total !== null && total <= top ? [node("line", { class: "total", x1: L, x2: W - 8, y1: y(total), y2: y(total) })] : [];
  const ticks = [0, top / 2, top].map((value) => label(L - 5, y(value) + 4, counted.format(Math.round(value)), "end"));
  const ends = [label(L, H - 8, "0", "start"), label(W - 8, H - 8, count(answers, "answer"), "end")];
  const axes = [node("line", { class: "grid", x1: L, x2: W - 8, y1: y(0), y2: y(0) }), node("line", { class: "grid", x1: L, x2: W - 8, y1: y(top / 2), y2: y(top / 2) })];
  const words = `${counted.format(found)} found after ${count(last[0], "answer")}.`;
  const more = estimate ? ` The band is the estimated total: about ${counted.format(Math.round(total ?? found))}${line.length ? " (dashed)" : ""}, ${counted.format(Math.round(least))} to ${most > 1e9 ? "any number" : counted.format(Math.round(most))}.` : "";
  return node("figure", {}, node("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Documents found, by answers. ${words}${more}` }, rect, axes, ticks, ends, line, node("path", { class: "gain", d: path })),
    node("figcaption", {}, words, more));
}

// ---------------------------------------------------------------- lists

function entryOf({ position, id, title, text }, source, own, ...meta) {
  const about = { position, id, title };
  const item = node("li", {}, node("div", {}, node("a", { class: "head", dir: "auto", href: address({ view: "judge", at: position }) }, bdi(title || `Document ${id}`)),
    text ? node("p", { class: "excerpt", dir: "auto" }, bdi(text)) : null, node("p", { class: "meta" }, "Document ", bdi(id), ...meta)), chooser(about, source, own));
  return item;
}

function chooser(about, source, own) {
  const group = node("div", { class: "choose", role: "group", "aria-label": `Answer on ${about.title || about.id}` });
  const make = (current) => group.replaceChildren(...["yes", "no", "skip"].filter((word) => source !== "adjudicated" || word !== "skip").map((word) => button({ class: word === "skip" ? null : word, "aria-pressed": String(word === current), onclick: () => choose(word) }, word)));
  const choose = tried(async (word) => {
    const found = await teach("/answer", { json: { topic: state.topic, position: about.position, answer: word, person: state.person ?? "", source, ask: false } });
    known(state.topic).counts = found.counts;
    if (state.now?.source === "asked") state.now = null; // this answer changes the next question, too
    make(word);
    [...group.children].find((button) => button.textContent === word).focus({ preventScroll: true });
    say(`${WORDS[word]}: ${about.title}.`);
  });
  make(own);
  return group;
}

// Add entries to a list that a button lengthens, or begin it anew; return the number of its entries.
function lengthen(name, made, offset, total, more) {
  const list = $(`${name}-list`);
  if (offset) list.append(...made);
  else list.replaceChildren(...made);
  const n = list.children.length;
  $(`${name}-more`).hidden = n >= total;
  $(`${name}-more`).onclick = tried(() => more(n));
  return n;
}

const ofAll = (n, total, one) => `${n < total ? `${counted.format(n)} of ` : ""}${count(total, one)}`;

let searched = null;
async function showSearch(query, offset = 0) {
  const asked_ = (searched = {});
  if (document.activeElement !== $("query") || offset === 0) $("query").value = query;
  if (!query.trim()) {
    $("search-found").textContent = "";
    $("search-list").replaceChildren();
    $("search-more").hidden = true;
    return;
  }
  const found = await get("search", { query, topic: state.topic, person: state.person ?? "", offset, limit: 20 });
  if (asked_ !== searched) return;
  const made = found.documents.map((each) => entryOf(each, "search", each.answer, each.label === null || each.answer ? null : [", judged ", given(each.label ? "yes" : "no"), " by others"]));
  const n = lengthen("search", made, offset, found.total, (before) => showSearch(query, before));
  $("search-found").textContent = found.total ? `${ofAll(n, found.total, "document")}${n < found.total ? ", the most similar first" : ""}` : `No document has a word of “${query}”.`;
  if (offset) $("search-list").children[offset]?.querySelector("a").focus();
}

async function showJudged(here, offset = 0) {
  const [answer_, by] = [here.answer ?? "", here.by];
  const found = await get("judgements", { topic: state.topic, answer: answer_, person: by?.slice(1), offset, limit: PAGE });
  const people = [...new Set(state.about.people.concat(state.person ? [state.person] : []))].sort();
  $("of-person").replaceChildren(node("option", { value: "" }, "anybody"), ...people.map((person) => node("option", { value: `=${person}` }, person)), node("option", { value: "=" }, "without a name"));
  $("of-person").value = by ?? "";
  $("of-answer").value = answer_;
  if (!offset) $("screened").replaceChildren(countsTable(await get("screening", { topic: state.topic })));
  const made = found.judgements.map((each) => entryOf(each, "list", each.person === (state.person ?? "") ? each.answer : null, ": ", given(each.answer), " by ", bdi(each.person || "someone without a name"), ` ${when(each.at)}`, each.source === "asked" ? null : `, ${SOURCES[each.source] ?? each.source}`, each.exclusion_reason ? [", ", bdi(each.exclusion_reason)] : null, each.note ? [". “", bdi(each.note), "”"] : null));
  const n = lengthen("judged", made, offset, found.total, async (before) => { await showJudged(here, before); $("judged-list").children[before]?.querySelector("a").focus(); });
  $("judged-found").textContent = found.total ? `${ofAll(n, found.total, "judgement")}, the latest first. The buttons change your answer.` : "Nothing is judged yet.";
}
const SOURCES = { search: "found by a search", list: "in a list", example: "an example", adjudicated: "adjudicated" };

async function showDuplicates(offset = 0) {
  const found = await get("duplicates", { offset, limit: PAGE });
  const made = groupEntries(found.groups, (position) => address({ view: "judge", at: position }), splitOff);
  const n = lengthen("duplicates", made, offset, found.total, showDuplicates);
  $("duplicates-found").textContent = found.total ? ofAll(n, found.total, "group") : "No record duplicates another one.";
}

const splitOff = tried(async ({ position, title, id }) => {
  await teach("/split", { json: { positions: [position], person: state.person ?? "" } });
  state.now = null; // the next question may be another one
  await refresh();
  await showDuplicates();
  $("duplicates-heading").focus({ preventScroll: true });
  notice("Split off: ", bdi(title || id), ". ", button({ onclick: () => { $("notice").replaceChildren(); undo(); } }, "Undo"));
});

async function showPeople() {
  const found = await get("agreement", { topic: state.topic });
  const kappa = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−"));
  const name = (person) => bdi(person || "someone without a name");
  const parts = [];
  if (!found.pairs.length) parts.push(node("p", {}, "No two people have judged the same document yet. People who open this page under another name are shown the same documents, so that their answers can be compared."));
  else {
    const shared = `${count(found.documents, "document")} judged by two people, who agree on ${percent(found.agreed)}.`;
    parts.push(found.kappa === null ? node("p", {}, `There are ${shared} Kappa, which corrects for chance, is not defined while all answers are the same.`)
      : node("p", {}, "Kappa ", node("b", {}, kappa(found.kappa)), ` over ${shared} Kappa is 1 if they always agree, and 0 if they agree only as often as by chance.`));
    parts.push(table(null, [["People"], ["Documents", "number"], ["Kappa", "number"]],
      found.pairs.map(({ people: [one, other], documents, kappa: value }) => node("tr", {}, node("th", { scope: "row" }, name(one), " and ", name(other)), node("td", { class: "number" }, counted.format(documents)), node("td", { class: "number" }, kappa(value))))));
    parts.push(node("h2", {}, "Disagreements"));
    if (!found.disagreements.length) parts.push(node("p", {}, "None left to adjudicate."));
    else parts.push(node("p", {}, `${count(found.disagreements.length, "document")} to adjudicate. `, node("a", { href: address({ view: "judge", list: DISAGREE }) }, "Go through them")),
      node("ul", { class: "list" }, found.disagreements.map((each) => entryOf(each, "adjudicated", null, ": ", Object.entries(each.answers).flatMap(([person, word], i) => [i ? ", " : "", name(person), " ", given(word)])))));
  }
  $("people-page").replaceChildren(...parts);
}

// ---------------------------------------------------------------- topics

const EXPORTS = [["included", ["ris", "csv", "jsonl"], "Included documents", "those with the label yes; RIS is for reference managers"], ["labels", ["csv", "ris", "jsonl"], "Labels", "all judged documents, each with its label, rank, answers and notes"],
  ["records", ["csv", "ris"], "All records", "judged or not, each with its rank, and everybody's answers and notes"],
  ["counts", ["csv"], "Counts", "records at each stage of screening, as PRISMA 2020 asks for them"], ["corpus", ["jsonl"], "Corpus", "documents and labels, for `textcat train`"],
  ["model", ["zip"], "Model", "trained on the answers; unpack it for `textcat tag`"], ["audit", ["csv", "jsonl"], "Audit log", "all answers: who, when, by which ranking, rank and score"]];
const FORMATS = { csv: "CSV", jsonl: "JSON Lines", ris: "RIS", zip: "ZIP" };

async function showTopics() {
  await refresh();
  drawHead();
  const { topics, documents, queues } = state.about;
  $("topics-page").replaceChildren(node("p", { class: "start" }, topics.length ? `${count(topics.length, "topic")} taught from ${count(documents, "document")}.` : `There are ${count(documents, "document")}, but no topic yet. Start one: describe what you look for, and judge the documents that are shown.`),
    topics.length ? table(null, [["Topic"], ["Yes", "number"], ["No", "number"], ["Skipped", "number wide"], ["Disagreements", "number wide"]],
      topics.map(({ topic, counts, disagreements }) => node("tr", {}, node("th", { scope: "row" }, node("a", { href: address({ view: "judge", topic }) }, bdi(topic))), [counts.yes, counts.no, counts.skip, disagreements].map((n, i) => node("td", { class: i > 1 ? "number wide" : "number" }, counted.format(n)))))) : "");
  $("exports").replaceChildren(...EXPORTS.map(([what, formats, name, words]) => node("li", {}, node("h3", { id: `exports-${what}` }, name), node("span", { class: "both", role: "group", "aria-labelledby": `exports-${what}` }, formats.map((form) => button({ id: `export-${what}-${form}`, disabled: !topics.length, onclick: () => download(what, form) }, FORMATS[form]))), node("p", {}, ...words.split("`").map((part, i) => (i % 2 ? node("code", {}, part) : part))))));
  $("queues").replaceChildren(...(queues.length ? [node("h2", {}, "Lists to review"), node("ul", { class: "exports" }, queues.map((each) => node("li", {}, node("a", { href: address({ view: "judge", topic: each.topic, list: each.name }) }, bdi(each.name)), node("p", {}, count(each.documents, "document")))))] : []));
}

const download = tried(async (what, form) => {
  const file = `${what}.${form}`;
  const button = $(`export-${what}-${form}`);
  if (button.getAttribute("aria-busy")) return;
  button.setAttribute("aria-busy", "true");
  say(`Preparing ${file}.`);
  try {
    const key = stored();
    const answer_ = await fetch(new URL(`api/v1/teach/export?what=${what}${form === "zip" ? "" : `&format=${form}`}`, document.baseURI), { headers: key ? { Authorization: `Bearer ${key}` } : {}, credentials: "omit", cache: "no-store" })
      .catch(() => { throw new Problem("The server does not answer", "It may be stopped, or the connection is lost."); });
    if (!answer_.ok) {
      const told = await answer_.json().catch(() => ({}));
      throw new Problem(told.title ?? "Something went wrong", told.detail ?? `The server answered ${answer_.status}.`, answer_.status);
    }
    const url = URL.createObjectURL(await answer_.blob());
    node("a", { href: url, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    say(`${file} is ready.`);
  } finally {
    button.removeAttribute("aria-busy");
  }
});

const findExample = tried(async () => {
  const query = $("new-example").value.trim();
  if (!query) return $("new-example").focus();
  const found = await get("search", { query, limit: 5 });
  const shown = new Map([...state.examples, ...found.documents.map((each) => [each.id, each.title])]);
  $("examples").replaceChildren(shown.size ? node("ul", {}, [...shown].map(([id, title]) => node("li", {}, node("label", {}, node("input", { type: "checkbox", checked: state.examples.has(id), onchange: (event) => (event.target.checked ? state.examples.set(id, title) : state.examples.delete(id)) }), bdi(title || id))))) : node("p", {}, `No document has a word of “${query}”.`));
  return null;
});

const begin = tried(async () => {
  const topic = $("new-name").value.trim();
  if (!topic) return $("new-name").focus();
  const found = await teach("/topics", { json: { topic, description: $("new-description").value.trim(), query: $("new-query").value.trim(), criteria: $("new-criteria").value.trim(), exclusion_reasons: $("new-exclusions").value.split("\n").map((line) => line.trim()).filter(Boolean), examples: [...state.examples.keys()], person: state.person ?? "" } });
  $("new-topic").reset();
  state.examples.clear();
  $("examples").replaceChildren();
  await refresh();
  Object.assign(state, { topic, progress: null });
  state.now = asked(found);
  return go({ view: "judge", topic });
});

// ---------------------------------------------------------------- who, and keys

const askName = handleDialogs(state, show);
const ACTIONS = {
  y: () => answer("yes"), n: () => answer("no"), s: () => answer("skip"), u: undo,
  c: () => $("note").focus(), "/": () => go({ view: "search" }), "?": () => $("help").showModal(),
};
const JUDGING = ["y", "n", "s", "c"];

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    if (state.view === "search" || (state.view === "judge" && route().at !== null)) go({ view: "judge" });
    else if (typing && state.view === "judge") focusDocument();
    return;
  }
  const key = event.key.toLowerCase(); // also with caps lock on
  const reason = /^[1-9]$/.test(key) && known(state.topic)?.exclusion_reasons[Number(key) - 1];
  const action = reason ? () => answer("no", reason) : ACTIONS[key];
  if (!action || typing || !state.keys || event.repeat || !state.topic || ((reason || JUDGING.includes(key)) && (state.view !== "judge" || !state.now))) return;
  event.preventDefault();
  action();
});

on("yes", "click", () => answer("yes"));
on("no", "click", () => answer("no"));
on("skip-it", "click", () => answer("skip"));
on("undo", "click", undo);
on("add-word", "submit", instead(() => addWord(true)));
on("word-against", "click", () => addWord(false));
on("search-form", "submit", instead(() => go({ view: "search", q: $("query").value })));
for (const id of ["of-answer", "of-person"]) on(id, "change", () => go({ view: "judged", answer: $("of-answer").value, by: $("of-person").value }, true));
on("all", "change", () => { state.now = null; show(); });
on("topic", "change", () => { $("all").checked = false; go({ view: state.view === "topics" ? "judge" : state.view, topic: $("topic").value }); });
on("new-topic", "submit", instead(begin));
on("find-example", "click", findExample);
on("new-example", "keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); findExample(); } });
addEventListener("popstate", show);

const start = tried(async () => {
  state.target = [0.8, 0.9, 0.95, 0.99].includes(Number(kept("target"))) ? Number(kept("target")) : 0.95;
  await refresh();
  if (state.person === null) askName(); // ask for the name before the first question
  else await show();
});
start();
