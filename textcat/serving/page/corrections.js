// Corrections: texts, each with topics that a person has said to be right or wrong, as `textcat learn` takes them.

import { $, ask, bdi, button, count, message, node, on, save } from "./common.js";
import { called, nameOf } from "./names.js";

const KEPT = "textcat-corrections";
const SHOWN = 80; // characters of a text in the list
const topicsOf = (told, right) => told.filter(([, belongs]) => belongs === right).map(([topic]) => topic);

// The corrections are kept in the browser until its tab is closed, or they are sent. `show` is called with a text to be
// shown, `changed` after each change, `wrong` with an error and what to try again.
export function corrections({ show, changed, wrong }) {
  let texts = []; // each { id, model, content, told: pairs of a topic and whether the text belongs to it }
  let sending = false;
  try {
    texts = JSON.parse(sessionStorage.getItem(KEPT)) ?? [];
  } catch {
    // the browser has no storage, or something else is in it
  }

  function keep(kept) {
    texts = kept.filter(({ told }) => told.length);
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(texts));
    } catch {
      // they are kept as long as the page is open
    }
    draw();
    changed();
  }

  function draw() {
    $("corrections").hidden = !texts.length;
    $("corrections-n").textContent = `${count(texts.length, "text")} corrected.`;
    $("corrections-list").replaceChildren(...texts.map(row));
  }

  function row(entry) {
    const { title, body } = entry.content.zones ?? { title: "", body: entry.content.text };
    const words = [...`${title} ${body}`.trim().replace(/\s+/g, " ")];
    const excerpt = words.slice(0, SHOWN).join("") + (words.length > SHOWN ? "…" : "");
    const opener = button({ class: "quiet", onclick: () => show({ title, body }) }, bdi(excerpt));
    return node("li", {}, opener, node("ul", {}, entry.told.map((pair) => answer(entry, ...pair))));
  }

  function answer(entry, topic, belongs) {
    const word = belongs ? "right" : "wrong";
    const buttons = () => [...$("corrections-list").querySelectorAll("[aria-label]")];
    const undo = () => {
      const i = buttons().indexOf(document.activeElement);
      set(entry, topic, null);
      const left = buttons();
      (left[Math.min(Math.max(i, 0), left.length - 1)] ?? $("body")).focus();
    };
    return node("li", {}, called(topic), ` ${word} `, button({ class: "quiet", "aria-label": `Undo: ${nameOf(topic)} is ${word}`, onclick: undo }, "Undo"));
  }

  // Say that a text belongs to a topic, or not; null takes it back.
  function set(entry, topic, belongs) {
    entry.told = entry.told.filter(([other]) => other !== topic);
    if (belongs !== null) entry.told.push([topic, belongs]);
    keep([...new Set([...texts, entry])]);
  }

  const entryOf = (content) => texts.find((entry) => entry.model === $("model").value && JSON.stringify(entry.content) === JSON.stringify(content));

  // What the server refuses, or a person says meanwhile, stays.
  async function send() {
    if (sending) return;
    sending = true;
    $("error").replaceChildren();
    let n = 0;
    for (const entry of texts) {
      const { model, content, told } = entry;
      if (!texts.includes(entry)) continue; // it was undone
      try {
        await ask(`models/${encodeURIComponent(model)}/corrections`, { json: { ...content, right: topicsOf(told, true), wrong: topicsOf(told, false), via: "page" } });
        entry.told = entry.told.filter((pair) => !told.includes(pair));
        n += 1;
      } catch (error) {
        wrong(error, send);
        if (error.status !== 422) break;
      }
    }
    sending = false;
    const focused = document.activeElement;
    keep(texts);
    if (n) message($("notice"), false, node("p", {}, `${count(n, "text")} sent. `, node("code", {}, "textcat learn MODEL --from FOLDER"), ` teaches ${n === 1 ? "it" : "them"} to the model.`));
    if (!texts.length && focused === $("corrections-send")) $("body").focus();
  }

  // For other topics than those that were told, a text is no example.
  const line = ({ id, content: { zones, text }, told }) => JSON.stringify({ id, ...(zones ?? { text }), topics: topicsOf(told, true), labelled_for: told.map(([topic]) => topic) });
  on("corrections-save", "click", () => save("corrections.jsonl", `${texts.map(line).join("\n")}\n`, "application/jsonl"));
  on("corrections-send", "click", send);
  on("corrections-drop", "click", () => { keep([]); $("body").focus(); });

  return {
    start: (server) => { $("corrections-send").hidden = !server.corrections; draw(); },
    tell: (content, topic, belongs) => set(entryOf(content) ?? { id: `correction-${Date.now().toString(36)}`, model: $("model").value, content, told: [] }, topic, belongs),
    of: (content, topic) => entryOf(content)?.told.find(([other]) => other === topic)?.[1] ?? null,
  };
}
