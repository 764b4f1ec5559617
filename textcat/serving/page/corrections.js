// Corrections: texts, each with topics that a person has said to be right or wrong, as `textcat learn` takes them.

import { save } from "./common.js";

const KEPT = "textcat-corrections";

// The corrections are kept in the browser until its tab is closed.
export function corrections() {
  const texts = new Map(); // by the text as JSON: { id, content, told: [[topic, belongs]] }
  try {
    for (const entry of JSON.parse(sessionStorage.getItem(KEPT) ?? "[]")) texts.set(JSON.stringify(entry.content), { ...entry, told: new Map(entry.told) });
  } catch {
    // the browser has no storage, or something else is in it
  }
  const keep = () => {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify([...texts.values()].map((entry) => ({ ...entry, told: [...entry.told] }))));
    } catch {
      // they are kept as long as the page is open
    }
  };
  return {
    size: () => texts.size,
    of: (content, topic) => texts.get(JSON.stringify(content))?.told.get(topic) ?? null,
    // Say that a text belongs to a topic, or not; null takes it back.
    tell(content, topic, belongs) {
      const key = JSON.stringify(content);
      const entry = texts.get(key) ?? { id: `correction-${Date.now().toString(36)}-${texts.size + 1}`, content, told: new Map() };
      if (belongs === null) entry.told.delete(topic);
      else entry.told.set(topic, belongs);
      if (entry.told.size) texts.set(key, entry);
      else texts.delete(key);
      keep();
    },
    clear() {
      texts.clear();
      keep();
    },
    // For other topics than those that were told, a text is no example.
    save() {
      const line = ({ id, content: { zones, text }, told }) => JSON.stringify({ id, ...(zones ? { title: zones.title, body: zones.body } : { text }), topics: [...told].filter(([, belongs]) => belongs).map(([topic]) => topic), labelled_for: [...told.keys()] });
      save("corrections.jsonl", `${[...texts.values()].map(line).join("\n")}\n`, "application/jsonl");
    },
  };
}
