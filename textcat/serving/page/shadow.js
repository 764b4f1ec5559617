// The page of a shadow: where the tags of a new model differ from those of the served one. No text of a client is shown.

import { $, ask, bdi, button, count, counted, keyForm, message, node, percent, table } from "./common.js";

const SECONDS = 5; // between looks at the counts

const fact = (name, words) => node("div", {}, node("dt", {}, name), node("dd", {}, words));

function draw(found) {
  const { documents, differing_documents: differing } = found;
  $("about").replaceChildren("The new model ", node("code", {}, found.shadow), " tags the documents that ", bdi(found.model), " tags, unseen by clients.");
  $("facts").replaceChildren(node("dl", { class: "facts" }, fact("tagged by both", count(documents, "document")),
    fact("tags differ", documents ? `${counted.format(differing)} (${percent(differing / documents)})` : "none yet"),
    fact("tags of the served model alone", counted.format(found.tags_only_served)), fact("of the new one alone", counted.format(found.tags_only_shadow)),
    found.failed_documents ? fact("could not be tagged", counted.format(found.failed_documents)) : null));
  const rows = found.topics.map((row) => node("tr", {}, node("th", { scope: "row" }, bdi(row.name ?? row.topic)), [row.only_served, row.only_shadow].map((n) => node("td", { class: "number" }, counted.format(n)))));
  $("topics").replaceChildren(rows.length ? table(null, [["topic"], ["only the served model", "number"], ["only the new one", "number"]], rows) : node("p", {}, "No topic differs yet."));
}

async function show() {
  try {
    draw(await ask("shadow"));
    $("error").replaceChildren();
    setTimeout(show, 1000 * SECONDS);
  } catch (error) {
    message($("error"), true, node("p", {}, node("strong", {}, error.title ?? "The page has an error"), ": ", error.message), error.status === 401 ? keyForm(show) : button({ onclick: show }, "Try again"));
  }
}

show();
