// The names of topics, from a vocabulary: they are shown before the ids.

import { bdi, node } from "./common.js";

const names = new Map(); // by topic

// Keep the names that an answer of the server has.
export function learnNames(answer) {
  const rows = [answer, ...(answer.tags ?? []), ...(answer.topics instanceof Array ? answer.topics : []), ...(answer.explanations ?? []), ...(answer.results ?? []).flatMap(({ tags }) => tags)];
  for (const { topic, name } of rows) if (topic !== undefined && name) names.set(topic, name);
}

export const nameOf = (topic) => names.get(topic) ?? topic;

// Return a node with the name of a topic, followed by its id, or with its id alone.
export function called(topic) {
  const name = nameOf(topic);
  return name === topic ? bdi(topic) : node("span", {}, bdi(name), " ", node("span", { class: "aside" }, bdi(topic)));
}
