// Texts of the page: packed into a link and unpacked again, and their marks moved along with an edit.

import { Problem, bytes } from "./common.js";

const UNPACKED = 1_000_000; // bytes that a packed text may unpack to

async function through(stream, data, most = Infinity) {
  const reader = new Blob([data]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    size += step.value.length;
    if (size > most) throw new Problem("The link holds too much text", `It unpacks to more than ${bytes(most)}.`);
    parts.push(step.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function pack(text) {
  const packed = await through(new CompressionStream("deflate-raw"), JSON.stringify(text));
  return btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// Return title and body; raise TypeError if the link holds something else.
export async function unpack(z) {
  const packed = Uint8Array.from(atob(z.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const fields = JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed, UNPACKED)));
  for (const field of [fields[0], fields[1]]) if (typeof field !== "string") throw new TypeError("not a text");
  return fields;
}

// Keep the marks before and after an edit in place until there are new ones.
export function shifted(marks, before, after) {
  if (!marks.length) return marks;
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const moved = after.length - before.length;
  return marks.flatMap((mark) => mark.end <= head ? [mark]
    : mark.start >= before.length - tail ? [{ ...mark, start: mark.start + moved, end: mark.end + moved }] : []);
}
