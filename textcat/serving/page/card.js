// The card of a model: made of nodes and texts alone, as a stranger's card may hold anything.

import { $, node } from "./common.js";

const TAGS = new Set("a blockquote code em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul".split(" "));

function made(element) {
  if (typeof element === "string") return element;
  const [tag, address, contents] = element;
  const inside = contents.map(made);
  if (!TAGS.has(tag)) return inside;
  if (tag === "a") return /^https?:\/\//i.test(address) ? node("a", { href: address, rel: "noopener noreferrer nofollow" }, ...inside) : inside;
  const heading = /^h([1-6])$/.exec(tag);
  const props = tag === "table" ? {} : tag === "th" ? { scope: "col" } : ["p", "li", "td", "pre"].includes(tag) ? { dir: "auto" } : {};
  return node(heading ? `h${Math.min(Number(heading[1]) + 1, 6)}` : tag, props, ...inside);
}

let shown = null; // the address of the card that is there

export async function showCard(ask, path) {
  if (shown === path) return;
  shown = path;
  const box = $("card");
  box.hidden = true;
  const { elements } = await ask(path).catch(() => ({ elements: null }));
  if (shown !== path) return;
  $("card-text").replaceChildren(...(elements || []).map(made).flat());
  box.hidden = !elements;
}
