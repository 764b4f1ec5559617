// Many texts at once: lines, or the rows of a CSV file, and a table of their topics to download.

import { $, Problem, button, count, counted, node, on, percent, save, table, wellFormed, worth } from "./common.js";
import { called, nameOf } from "./names.js";

const SHOWN = 200; // rows of the table
const EXCERPT = 160; // characters of a text in it
const MOST = 10_000; // texts at once: more are a job for `textcat tag`
const PART = 1_000_000; // characters of a request
const USUAL = "text body content abstract story article description message".split(" ");
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/; // what a spreadsheet would run

// Return the rows of CSV or TSV; quotes enclose cells with separators and line ends.
export function rowsOf(text, separator) {
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    const row = rows.at(-1);
    if (quoted) {
      if (letter !== '"') row[row.length - 1] += letter;
      else if (text[i + 1] === '"') row[row.length - 1] += text[(i += 1)];
      else quoted = false;
    } else if (letter === '"' && row.at(-1) === "") quoted = true;
    else if (letter === separator) row.push("");
    else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && text[i + 1] === "\n") i += 1;
      rows.push([""]);
    } else row[row.length - 1] += letter;
  }
  return rows.filter((row) => row.length > 1 || row[0].trim());
}

const linesOf = (text) => text.split(/\r?\n/).filter((line) => line.trim()).map((line) => [line]);

export function cell(value) {
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const state = { rows: [], header: null, column: 0, results: [], running: null };

export function showMany(server) {
  state.server = server;
}

on("many-tag", "click", () => { read(linesOf($("many-lines").value), null); tagAll(); });
on("many-stop", "click", () => { state.running = null; });
on("many-file", "change", async () => { await readTable($("many-file").files[0]); $("many-file").value = ""; });

function read(rows, header) {
  const likely = header?.findIndex((name) => USUAL.includes(name.trim().toLowerCase())) ?? 0;
  const longest = () => header.map((_, i) => rows.reduce((sum, row) => sum + (row[i]?.length ?? 0), 0)).reduce((best, sum, i, sums) => (sum > sums[best] ? i : best), 0);
  Object.assign(state, { rows, header, column: header && likely < 0 ? longest() : Math.max(likely, 0), results: [] });
  const select = header && node("select", { id: "many-which", onchange: () => { state.column = Number(select.value); tagAll(); } }, header.map((name, i) => node("option", { value: i, selected: i === state.column }, name || `column ${i + 1}`)));
  $("many-column").replaceChildren(...(header ? [node("div", { class: "pick" }, node("label", { for: "many-which" }, "Column of the texts"), select)] : []));
}

async function readTable(file) {
  const text = (await file.text()).replace(/^\ufeff/, "");
  const [head] = text.split("\n", 1);
  const separator = { csv: head.includes(";") && !head.includes(",") ? ";" : ",", tsv: "\t" }[file.name.toLowerCase().split(".").at(-1)];
  const rows = separator ? rowsOf(text, separator) : linesOf(text);
  if (separator) read(rows.slice(1), rows[0] ?? [""]);
  else read(rows, null);
  await tagAll();
}

async function tagAll() {
  const { wrong } = state.server;
  if (state.rows.length > MOST) return wrong(new Problem("Too many texts", `There are ${counted.format(state.rows.length)}, and the page takes ${counted.format(MOST)}: tag the file with \`textcat tag\`.`));
  const texts = state.rows.map((row) => row[state.column] ?? "");
  const mine = (state.running = {});
  state.results = [];
  $("many-stop").hidden = false;
  try {
    for (let done = 0; done < texts.length && state.running === mine; done = state.results.length) {
      let [end, size] = [done, 0];
      while (end < texts.length && end - done < state.server.documents && (end === done || size + texts[end].length <= PART)) size += texts[end++].length;
      const { results } = await state.server.ask(texts.slice(done, end).map((text) => ({ text: wellFormed(text) })));
      if (state.running !== mine) break;
      state.results.push(...results.map(({ tags }) => tags.sort((one, other) => worth(other) - worth(one)))); // as for one text
      draw();
    }
  } catch (error) {
    wrong(error, tagAll);
  }
  $("many-stop").hidden = true;
  draw();
  return null;
}

function draw() {
  const { results, rows, column } = state;
  const without = results.filter((tags) => !tags.length).length;
  $("many-told").textContent = !rows.length ? "There is no text yet." : `${counted.format(results.length)} of ${count(rows.length, "text")} tagged, ${counted.format(without)} without a topic.${results.length > SHOWN ? ` The first ${SHOWN} are shown.` : ""}`;
  const shown = ({ topic, probability }, i) => [i ? "; " : "", called(topic), typeof probability === "number" ? ` ${percent(probability)}` : ""];
  const line = (tags, i) => node("tr", {}, node("td", { class: "number" }, counted.format(i + 1)), node("td", { dir: "auto" }, (rows[i][column] ?? "").slice(0, EXCERPT)), node("td", {}, tags.flatMap(shown)));
  $("many-table").replaceChildren(...(results.length ? [node("p", {}, button({ id: "many-save", onclick: download }, "Download as CSV")),
    node("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Texts and their topics" }, table("many", [["Nr.", "number"], ["Text"], ["Topics"]], results.slice(0, SHOWN).map(line)))] : []));
}

// All columns of the file go along, safe for spreadsheets; topics are ids, with the names after them if there are names.
function download() {
  const { results, rows, header } = state;
  const named = results.some((tags) => tags.some(({ topic }) => nameOf(topic) !== topic));
  const head = [...(header ?? ["text"]), "topics", ...(named ? ["names"] : []), "probabilities"];
  const lines = results.map((tags, i) => [...(header ?? ["text"]).map((_, k) => rows[i][k] ?? ""), tags.map(({ topic }) => topic).join("; "), ...(named ? [tags.map(({ topic }) => nameOf(topic)).join("; ")] : []), tags.map(({ probability }) => probability?.toFixed(4) ?? "").join("; ")]);
  save("topics.csv", [head, ...lines].map((values) => `${values.map(cell).join(",")}\r\n`).join(""), "text/csv");
}
