// Corrections: texts, each with topics that a person has said to be right or wrong, as `textcat learn` takes them.

import { $, bdi, button, count, node, on, save } from "./common.js";
import { called, nameOf } from "./names.js";

const KEPT = "textcat-corrections";
const SHOWN = 80; // characters of a text in the list

// The corrections are kept in the browser until its tab is closed. `show` is called with a text to be shown, `changed`
// after each change.
export function corrections({ show, changed }) {
  const texts = new Map(); // by the text as JSON: { id, content, told: Map of topic to whether the text belongs to it }
  try {
    for (const entry of JSON.parse(sessionStorage.getItem(KEPT) ?? "[]")) texts.set(JSON.stringify(entry.content), { ...entry, told: new Map(entry.told) });
  } catch {
    // the browser has no storage, or something else is in it
  }

  function keep() {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify([...texts.values()].map((entry) => ({ ...entry, told: [...entry.told] }))));
    } catch {
      // they are kept as long as the page is open
    }
    draw();
    changed();
  }

  function draw() {
    $("corrections").hidden = !texts.size;
    $("corrections-n").textContent = `${count(texts.size, "text")} corrected.`;
    $("corrections-list").replaceChildren(...[...texts.values()].map(row));
  }

  function row({ content, told }) {
    const { title, body } = content.zones ?? { title: "", body: content.text };
    const words = [...`${title} ${body}`.trim().replace(/\s+/g, " ")];
    const excerpt = words.slice(0, SHOWN).join("") + (words.length > SHOWN ? "…" : "");
    const opener = button({ class: "quiet", onclick: () => show({ title, body }) }, bdi(excerpt));
    return node("li", {}, opener, node("ul", {}, [...told].map(([topic, belongs]) => answer(content, topic, belongs ? "right" : "wrong"))));
  }

  function answer(content, topic, word) {
    const undo = () => {
      const buttons = [...$("corrections-list").querySelectorAll("[aria-label]")], i = buttons.indexOf(document.activeElement);
      tell(content, topic, null);
      const left = $("corrections-list").querySelectorAll("[aria-label]");
      (left[Math.min(Math.max(i, 0), left.length - 1)] ?? $("body")).focus();
    };
    return node("li", {}, called(topic), ` ${word} `, button({ class: "quiet", "aria-label": `Undo: ${nameOf(topic)} is ${word}`, onclick: undo }, "Undo"));
  }

  // Say that a text belongs to a topic, or not; null takes it back.
  function tell(content, topic, belongs) {
    const key = JSON.stringify(content);
    const entry = texts.get(key) ?? { id: `correction-${Date.now().toString(36)}-${texts.size + 1}`, content, told: new Map() };
    if (belongs === null) entry.told.delete(topic);
    else entry.told.set(topic, belongs);
    if (entry.told.size) texts.set(key, entry);
    else texts.delete(key);
    keep();
  }

  // For other topics than those that were told, a text is no example.
  const line = ({ id, content: { zones, text }, told }) => JSON.stringify({ id, ...(zones ? { title: zones.title, body: zones.body } : { text }), topics: [...told].filter(([, belongs]) => belongs).map(([topic]) => topic), labelled_for: [...told.keys()] });
  on("corrections-save", "click", () => save("corrections.jsonl", `${[...texts.values()].map(line).join("\n")}\n`, "application/jsonl"));
  on("corrections-drop", "click", () => { texts.clear(); keep(); $("body").focus(); });

  return { draw, tell, of: (content, topic) => texts.get(JSON.stringify(content))?.told.get(topic) ?? null };
}
