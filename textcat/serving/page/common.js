// Shared code of the server's pages.

const STRENGTHS = [0.06, 0.15, 0.35, 0.65]; // shares of the strongest contribution from which marks are darker: m0 to m4

// ---------------- nodes

export const $ = (id) => document.getElementById(id);
export const on = (id, event, action) => $(id).addEventListener(event, action);

export function node(name, props = {}, ...children) {
  const made = name === "svg" || SVG.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "width%") made.style.width = `${value}%`;
    else if (key === "left%") made.style.left = `${value}%`;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}
const SVG = new Set(["path", "line", "circle", "g"]);
export const button = (props, ...children) => node("button", { type: "button", ...props }, ...children);
export const bdi = (text) => node("bdi", {}, text);

// Return a table; each head is its words and, perhaps, its class.
export function table(kind, heads, rows) {
  const head = heads.map(([words, class_]) => node("th", { scope: "col", class: class_ }, words));
  return node("table", { class: kind }, node("thead", {}, node("tr", {}, head)), node("tbody", {}, rows));
}

// Return a bar for each number, to the left if it is below 0.
export function swings(values) {
  const largest = Math.max(...values.map(Math.abs), 1e-9);
  return values.map((value) => node("span", { class: "swing", "aria-hidden": "true" }, node("i", { class: value < 0 ? "con" : "pro", "width%": (50 * Math.abs(value)) / largest })));
}

// ---------------- numbers

export const counted = new Intl.NumberFormat("en");
export const count = (n, one, many = `${one}s`) => `${counted.format(n)} ${n === 1 ? one : many}`;
export const percent = (p) => (p > 0 && p < 0.001 ? "<\u202f0.1" : p < 1 && p > 0.9995 ? ">\u202f99.9" : (100 * p).toFixed((p && p < 0.0995) || (p < 1 && p > 0.9905) ? 1 : 0)) + "\u202f%";
export const passable = (x) => Number.isFinite(x) && Math.abs(x) < 1e38; // JSON has no infinity
export const decimal = (x) => (!passable(x) ? "none" : x === 0 ? "0" : Math.abs(x) >= 1000 ? counted.format(Math.round(x)) : Number(x.toPrecision(3)).toString().replace("-", "−"));
export const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);
export const bytes = (n) => (n < 10_000 ? `${counted.format(n)} bytes` : n < 1e6 ? `${Math.round(n / 1000)} kB` : `${(n / 1e6).toFixed(1).replace(".0", "")} MB`);
export const sigmoid = (x) => 1 / (1 + Math.exp(-x));
export const worth = (tag) => tag.probability ?? tag.score;
export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// ---------------- the server

export const wellFormed = (text) => (text.toWellFormed ? text.toWellFormed() : text);

export class Problem extends Error {
  constructor(title, detail, status = 0, wait = null) {
    super(detail || title);
    Object.assign(this, { title, detail, status, wait });
  }
}

export async function ask(path, { json, body, type, signal, match } = {}) {
  const headers = { Accept: "application/json" };
  const key = stored();
  if (key) headers.Authorization = `Bearer ${key}`;
  if (match) headers["If-Match"] = match; // required by the server
  if (json) headers["Content-Type"] = "application/json";
  else if (body) headers["Content-Type"] = type || "application/octet-stream";
  let answer, content;
  try {
    answer = await fetch(new URL(`api/v1/${path}`, document.baseURI), {
      method: json || body ? "POST" : "GET", headers, body: json ? JSON.stringify(json) : body, signal, credentials: "omit", cache: "no-store",
    });
    content = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer", "It may be stopped, or the connection is lost.");
  }
  try {
    content = JSON.parse(content);
  } catch {
    content = null;
  }
  if (!answer.ok || content === null || typeof content !== "object") {
    const wait = Number.parseInt(answer.headers.get("Retry-After"), 10);
    const words = content && typeof content.detail === "string" ? content.detail : `The server answered ${answer.status}${answer.ok ? ", but no JSON" : ""}.`;
    throw new Problem((content && typeof content.title === "string" && content.title) || "Something went wrong", words, answer.status, wait || null);
  }
  return content;
}

export function stored(key) {
  try {
    if (key !== undefined) sessionStorage.setItem("textcat-key", key);
    return sessionStorage.getItem("textcat-key");
  } catch {
    return key ?? null; // the browser has no storage
  }
}

// Ask for a key, then call `again`.
export function keyForm(again) {
  const input = node("input", { type: "password", id: "key", autocomplete: "off" });
  const use = (event) => { event.preventDefault(); stored(input.value.trim()); $("error").replaceChildren(); again(); };
  return node("form", { onsubmit: use }, node("label", { for: "key" }, "API key"), input, node("button", {}, "Use this key"));
}

// ---------------- files

export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  node("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// ---------------- messages

export function message(place, wrong, ...content) {
  const close = button({ onclick: () => place.replaceChildren() }, "Dismiss");
  place.replaceChildren(node("div", { class: wrong ? "message wrong" : "message" }, ...content, close));
}

// ---------------- evidence in a text

// Map the server's offsets, in characters, to JavaScript's, in UTF-16 code units.
export function places(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (place) => Math.min(place, text.length);
  const starts = [];
  for (let place = 0; place < text.length; place += text.codePointAt(place) > 0xffff ? 2 : 1) starts.push(place);
  return (place) => starts[place] ?? text.length;
}

// Turn spans of terms, which may overlap, into pieces of a text, each with the terms that cover it.
export function pieces(reasons, holds, text) {
  const place = places(text);
  const edges = new Map();
  const edge = (at, term, on) => edges.set(at, [...(edges.get(at) ?? []), [term, on]]);
  reasons.forEach((reason, rank) => {
    for (const { zone, start, end } of reason.spans) {
      if (!holds(zone) || end <= start) continue;
      edge(place(start), rank, 1);
      edge(place(end), rank, -1);
    }
  });
  const made = [];
  const over = new Map();
  const at = [...edges.keys()].sort((x, y) => x - y);
  at.forEach((start, i) => {
    for (const [rank, step] of edges.get(start)) over.set(rank, (over.get(rank) ?? 0) + step);
    const terms = [...over].filter(([, n]) => n > 0).map(([rank]) => rank);
    const end = at[i + 1];
    if (terms.length && end > start) made.push({ start, end, terms, sum: terms.reduce((sum, rank) => sum + reasons[rank].contribution, 0) });
  });
  const largest = Math.max(...reasons.map((reason) => Math.abs(reason.contribution)), 1e-9);
  const level = (share) => STRENGTHS.filter((least) => share >= least).length;
  return made.map(({ start, end, terms, sum }) => ({
    start, end, why: terms.map((rank) => reasons[rank]), class: `${sum < 0 ? "con" : "pro"} m${level(Math.abs(sum) / largest)}`,
  }));
}

// ---------------- figures

export function label(x, y, words, anchor) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "text");
  for (const [key, value] of Object.entries({ x, y, "text-anchor": anchor })) made.setAttribute(key, value);
  made.append(words);
  return made;
}
