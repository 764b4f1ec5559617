// Ranks pages by the words of a question. Sphinx's own search finds only pages that have all of them, and ranks a page by
// one of them; here a page needs one, rare words count more than common ones (BM25), and words of headings most. A heading
// that is the whole question, or the command of that name, comes first.
"use strict";

const PARTS = { text: 1, heading: 1.5, title: 2 };
const K1 = 1.2;
const B = 0.3;
const SCALE = 5; // so that a good page is ranked among Sphinx's own results, the titles that contain the whole question

const EXACT = 1000; // more than any page has

const asList = (pages) => (pages === undefined ? [] : pages.length === undefined ? [pages] : pages);

/** The pages that have a word, or else words that begin with it. */
const pagesWith = (index, word) => {
  if (Object.hasOwn(index, word)) return asList(index[word]);
  if (word.length < 4) return [];
  return [...new Set(Object.keys(index).filter((other) => other.startsWith(word)).flatMap((other) => asList(index[other])))];
};

/** How many different words each page has. */
const lengthsOf = (terms, n) => {
  const lengths = new Array(n).fill(0);
  for (const pages of Object.values(terms)) for (const page of asList(pages)) lengths[page] += 1;
  return lengths;
};

/** The headings that are the question itself, such as `textcat tag` for "tag". */
const exactHeadings = () => {
  const question = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();
  const { alltitles, titles, docnames, filenames } = Search._index;
  return Object.entries(alltitles)
    .filter(([heading]) => [question, `textcat ${question}`].includes(heading.toLowerCase()))
    .flatMap(([heading, places]) => places.map(([page, id]) => [heading, page, id]))
    .map(([heading, page, id]) => {
      const shown = titles[page] === heading ? heading : `${titles[page]} > ${heading}`;
      return [docnames[page], shown, id === null ? "" : `#${id}`, null, EXACT, filenames[page], SearchResultKind.title];
    });
};

const rankPages = (words, excluded) => {
  const { terms, titleterms, titles, docnames, filenames } = Search._index;
  const n = docnames.length;
  const lengths = lengthsOf(terms, n);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / n;
  const mainTitles = titles.map((title) => new Set(title.toLowerCase().split(/[^\p{L}\p{N}]+/u).map((w) => Search.stemmer.stemWord(w))));
  const scores = new Map();
  for (const word of words) {
    const inText = new Set(pagesWith(terms, word));
    const inHeadings = new Set(pagesWith(titleterms, word));
    const having = new Set([...inText, ...inHeadings]);
    const rarity = Math.log(1 + (n - having.size + 0.5) / (having.size + 0.5));
    for (const page of having) {
      const short = (K1 + 1) / (1 + K1 * (1 - B + (B * lengths[page]) / mean));
      const parts =
        PARTS.text * short + PARTS.heading * inHeadings.has(page) + PARTS.title * mainTitles[page].has(word);
      scores.set(page, (scores.get(page) ?? 0) + rarity * parts);
    }
  }
  const unwanted = new Set([...excluded].flatMap((word) => [...pagesWith(terms, word), ...pagesWith(titleterms, word)]));
  const ranked = [...scores].filter(([page]) => !unwanted.has(page));
  return exactHeadings().concat(
    ranked.map(([page, score]) => [docnames[page], titles[page], "", null, SCALE * score, filenames[page], SearchResultKind.text])
  );
};

document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // only the page of results has it
  Search.stemmer = new Stemmer();
  Search.performTermsSearch = rankPages;
  const findObjects = Search.performObjectSearch;
  Search.performObjectSearch = (name, names) => (names.size === 1 ? findObjects(name, names) : []);
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false; // pages on disk cannot be fetched
});
