
// Search and sort the rows of all topics, of which the first are shown, and search the documents.
const COUNTS = new Set([1, 2, 4]);  // columns of whole numbers; the others after the first are shares
const cell = (value, k) => (value === null ? "–" : COUNTS.has(k) ? value.toLocaleString("en") : value.toFixed(3));
const many = (n, what) => `${n.toLocaleString("en")} ${what}`;
const rows = D.topics.map((cells) => ({cells, text: cells[0].toLowerCase()}));

function show() {
  const wanted = $("filter").value.toLowerCase(), found = rows.filter((row) => row.text.includes(wanted));
  const cut = found.length > D.shown ? `; the first ${D.shown} are shown` : "";
  $("table").tBodies[0].replaceChildren(...found.slice(0, D.shown).map(({cells: [name, ...values]}) =>
    h("tr", {}, h("th", {scope: "row", dir: "auto"}, name), values.map((value, k) => h("td", {}, cell(value, k + 1))))));
  $("shown").textContent = `${found.length.toLocaleString("en")} of ${many(rows.length, "topics")}${cut}`;
}

// Sort by a column; values that are missing come last.
function sort(k, up) {
  const order = (a, b) => (k ? a - b : a.localeCompare(b));
  rows.sort(({cells: a}, {cells: b}) => (a[k] === null) - (b[k] === null) || (a[k] === null ? 0 : up * order(a[k], b[k])));
  show();
}

function sortable() {
  const heads = [...$("table").tHead.rows[0].cells];
  heads.forEach((head, k) => head.replaceChildren(h("button", {type: "button", onclick: () => {
    const now = head.getAttribute("aria-sort"), up = now ? now === "descending" : k === 0;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    sort(k, up ? 1 : -1);
  }}, head.textContent)));
  $("table").caption.textContent = D.caption;
}

function find() {
  const wanted = $("find").value.toLowerCase(), all = [...$("worst").children];
  for (const one of all) one.hidden = !one.textContent.toLowerCase().includes(wanted);
  $("found").textContent = `${all.filter((one) => !one.hidden).length} of ${many(all.length, "documents")}`;
}

sortable();
show();
$("filter").addEventListener("input", show);
if ($("worst")) {
  $("find").addEventListener("input", find);
  find();
}
