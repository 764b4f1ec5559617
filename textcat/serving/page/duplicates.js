// Groups of near-duplicates on the teaching page: a list in which a record can be split off its group.

import { bdi, button, node } from "./common.js";

// Return an entry of the list for each group; `open` gives the address of a record, and `split` splits it off.
export function groupEntries(groups, open, split) {
  return groups.map((records, n) => node("li", {}, node("ul", { class: "group", "aria-label": `Group ${n + 1}` }, records.map((each) => node("li", {},
    node("div", {}, node("a", { class: "head", dir: "auto", href: open(each.position) }, bdi(each.title || `Document ${each.id}`)),
      node("p", { class: "meta" }, each.reference ? [bdi(each.reference), " · "] : null, "Document ", bdi(each.id))),
    button({ "aria-label": `Split off ${each.title || each.id}`, onclick: () => split(each) }, "Split off"))))));
}
