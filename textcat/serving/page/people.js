// Shared code of the pages on which people judge documents.

import { $, Problem, bdi, button, count, keyForm, message, node, on, pieces, signed } from "./common.js";

const LONG = 200_000; // longer texts, in characters, are not marked: browsers are too slow
const PLAIN = ["body", "text"]; // zones whose names are not shown

export function kept(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`textcat-teach-${name}`, value);
    return localStorage.getItem(`textcat-teach-${name}`);
  } catch {
    return value ?? null; // the browser has no storage
  }
}

// Show an error with its remedy.
export function showError(error, start, again = null) {
  const parts = [node("p", {}, node("strong", {}, error.status === 412 ? "This page is old" : error.title ?? "The page has an error"), ": ", error.message, error.wait ? ` Try again in ${count(error.wait, "second")}.` : "")];
  if (error.status === 401) parts.push(keyForm(start));
  else if (error.status === 412) parts.push(button({ onclick: () => location.reload() }, "Reload the page"));
  else if (again) parts.push(button({ onclick: () => { $("error").replaceChildren(); again(); } }, "Try again"));
  if (!(error instanceof Problem)) console.error(error);
  message($("error"), true, ...parts);
}

export const instead = (action) => (event) => { event.preventDefault(); action(); };
export const focusDocument = () => $("document").focus({ preventScroll: true });
export const showDocument = () => { scrollTo(0, 0); focusDocument(); };

export function drawPerson({ person, about }) {
  $("person").replaceChildren(...(person ? [bdi(person)] : ["No name"]));
  $("person").setAttribute("aria-label", `You are ${person || "without a name"}: change it`);
  $("person").disabled = Boolean(about.person);
}

// Handle the dialogs of name and keys, and the note; return what asks for the name.
export function handleDialogs(state, renamed) {
  const askName = () => { $("name").value = state.person ?? ""; $("who").showModal(); $("name").select(); };
  const nameIs = (name) => {
    Object.assign(state, { person: name, now: null });
    kept("person", name);
    $("who").close();
    renamed();
  };
  state.person = kept("person");
  state.keys = $("use-keys").checked = kept("keys") !== "off";
  on("person", "click", askName);
  on("who-form", "submit", instead(() => nameIs($("name").value.trim())));
  on("who", "close", () => { if (state.person === null) nameIs(""); });
  on("nameless", "click", () => nameIs(""));
  on("keys", "click", () => $("help").showModal());
  on("help-close", "click", () => $("help").close());
  on("use-keys", "change", () => { state.keys = $("use-keys").checked; kept("keys", state.keys ? "on" : "off"); });
  on("note", "keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); focusDocument(); } });
  on("skip", "click", instead(() => $("main").focus()));
  return askName;
}

// Return a document's title, or the beginning of its text.
export function heading({ zones, id }) {
  const words = (zones.title || Object.values(zones).join(" ")).replace(/\s+/g, " ").trim();
  return (words.length > 120 ? `${words.slice(0, 119)}…` : words) || `Document ${id}`;
}

// Draw the texts of a document, with the words of the reasons marked.
export function drawTexts(shown, reasons) {
  const { zones } = shown;
  const names = Object.keys(zones).filter((name) => name !== "title" && zones[name].trim());
  const marked = (name) => {
    const text = zones[name];
    if (text.length > LONG) return [text];
    const made = [];
    let done = 0;
    for (const mark of pieces(reasons, (zone) => zone === name, text)) {
      made.push(text.slice(done, mark.start), node("mark", { class: mark.class, title: mark.why.map((why) => `${why.term} ${signed(why.contribution)}`).join("\n") }, text.slice(mark.start, mark.end)));
      done = mark.end;
    }
    return [...made, text.slice(done)];
  };
  $("document-title").replaceChildren(...(zones.title?.trim() ? marked("title") : [node("span", { class: "unseen" }, heading(shown))]));
  $("document-text").replaceChildren(...names.flatMap((name) => [names.length > 1 && !PLAIN.includes(name) ? node("p", { class: "zone" }, bdi(name)) : null, node("div", {}, marked(name))]).filter(Boolean));
  $("legend").hidden = !reasons.length;
  $("legend").replaceChildren(node("mark", { class: "pro m2" }, "speaks for the topic"), node("mark", { class: "con m2" }, "speaks against it"));
}
