"use strict";
// What the scripts of all reports use. Texts are set as text, never as HTML.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
};
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
