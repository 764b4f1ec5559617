// Screening of references on the teaching page: a record's fields, the topic's criteria, exclusion reasons, and the counts.

import { bdi, button, counted, node } from "./common.js";

const OUTSIDE = { target: "_blank", rel: "noopener noreferrer" };
const DOI = "https://doi.org/";
const SHOWN = ["authors", "year", "journal", "doi", "url"]; // the fields of the first line
const AUTHORS = 6;      // of more, the first ones are shown
const LONG = 2000;      // characters of a field that are shown
const KEYED = 9;        // exclusion reasons that have a key

const words = (value) => {
  const text = Array.isArray(value) ? value.map(words).join("; ") : value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? "");
  return text.length > LONG ? `${text.slice(0, LONG - 1)}…` : text;
};

function link(url, text) {
  let target;
  try {
    target = new URL(url);
  } catch {
    return bdi(text);
  }
  return ["http:", "https:"].includes(target.protocol) ? node("a", { href: target.href, ...OUTSIDE }, bdi(text)) : bdi(text);
}

// Return the fields of a record: authors, journal, year and DOI in a line, the others in a list that opens.
export function record(fields = {}) {
  const authors = Array.isArray(fields.authors) && fields.authors.length > AUTHORS ? `${words(fields.authors.slice(0, AUTHORS))} and ${fields.authors.length - AUTHORS} more` : words(fields.authors);
  const doi = words(fields.doi).replace(/^(https?:\/\/(dx\.)?doi\.org\/|doi:\s*)/i, "");
  const url = words([fields.url].flat()[0]);
  const facts = [authors && bdi(authors), fields.journal && node("cite", {}, bdi(words(fields.journal))), fields.year && bdi(words(fields.year)),
    doi && link(DOI + encodeURI(doi), `doi:${doi}`), !doi && url && link(url, url)].filter(Boolean);
  const others = Object.entries(fields).filter(([name, value]) => !SHOWN.includes(name) && words(value));
  return [facts.length ? node("p", { class: "reference" }, facts.flatMap((fact, i) => (i ? [" · ", fact] : [fact]))) : null,
    others.length ? node("details", { class: "fields" }, node("summary", {}, "Other fields"), node("dl", {}, others.flatMap(([name, value]) => [node("dt", {}, bdi(name)), node("dd", {}, bdi(words(value)))]))) : null].filter(Boolean);
}

// Return the criteria of a topic, as they were written.
export function criteria(text) {
  return text ? [node("details", { open: true }, node("summary", {}, "Criteria"), node("div", { class: "criteria", dir: "auto" }, text))] : [];
}

// Return a button for each exclusion reason; the first nine have keys.
export function exclusions(reasons, exclude) {
  if (!reasons.length) return [];
  return [node("span", { id: "because" }, "No, because:"), ...reasons.map((reason, i) => button({ class: "no", "aria-keyshortcuts": i < KEYED ? `${i + 1}` : null, onclick: () => exclude(reason) }, bdi(reason), i < KEYED ? [" ", node("kbd", {}, `${i + 1}`)] : null))];
}

// Return the counts of screening as a table.
export function countsTable(counts) {
  const of = (name, n, inner = false) => node("tr", {}, node("th", { scope: "row", class: inner ? "inner" : null }, name), node("td", { class: "number" }, counted.format(n)));
  return node("details", {}, node("summary", {}, "Records at each stage of screening (PRISMA 2020)"), node("table", { class: "counts" }, node("tbody", {},
    of("Identified", counts.identified), counts.unreadable ? of("Unreadable", counts.unreadable, true) : null, of("Near-duplicates removed", counts.duplicates, true),
    of("Screened", counts.screened), of("Excluded", counts.excluded), Object.entries(counts.exclusion_reasons).map(([reason, n]) => of(bdi(reason), n, true)),
    of("Included", counts.included), of("Not screened", counts.not_screened))));
}
