// Shared code of the pages on which people judge documents: the browser's storage, and a document with marked words.

import { $, bdi, node, pieces, signed } from "./common.js";

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
