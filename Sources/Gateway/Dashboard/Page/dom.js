// Elements, made without markup in strings: what the gateway tells is text, never HTML.

const svgSpace = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (name, attributes = {}, ...children) => build(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  build(document.createElementNS(svgSpace, name), attributes, children);

export const byID = (id) => document.getElementById(id);

// Sets a text only when it differs, so that readers of the screen are not told the same again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const empty = (...children) => el("p", { class: "empty" }, ...children);

export const badge = (text, ink) => el("span", { class: `badge ink-${ink}` }, text);

// One of a list of facts: a name, and what there is of it.
export const fact = (name, ...value) => el("div", {}, el("dt", {}, name), el("dd", {}, ...value));

// A bar whose filled part is `share` (0 to 1).
export function track(share, ink) {
  const filled = el("span");
  filled.style.inlineSize = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return el("div", { class: `track ink-${ink}`, "aria-hidden": "true" }, share > 0 ? filled : null);
}
