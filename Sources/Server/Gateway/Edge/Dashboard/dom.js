// Creates elements without markup in strings: data of the gateway is text, never HTML.

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

// Sets a text only if it differs, so that screen readers do not repeat it.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const empty = (...children) => el("p", { class: "empty" }, ...children);

export const badge = (text, ink) => el("span", { class: `badge ink-${ink}` }, text);

// Returns an entry of a description list: a name and its value.
export const fact = (name, ...value) => el("div", {}, el("dt", {}, name), el("dd", {}, ...value));

// A bar whose filled part is `share` (0 to 1).
export function track(share, ink) {
  const filled = el("span");
  filled.style.inlineSize = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return el("div", { class: `track ink-${ink}`, "aria-hidden": "true" }, share > 0 ? filled : null);
}

// Changes the children of `host` to the wanted ones, and keeps every equal element, so that selection, focus and scroll
// position remain. Elements with listeners have a `data-key` that identifies their action.
export function fill(host, ...wanted) {
  const nodes = wanted.flat().filter((node) => node !== null && node !== undefined && node !== false)
    .map((node) => (typeof node === "string" ? document.createTextNode(node) : node));
  const keyOf = (node) => node?.dataset?.key;
  const keyed = new Map([...host.children].filter(keyOf).map((node) => [keyOf(node), node]));
  const kept = new Set(nodes.map(keyOf).filter((key) => key));
  for (const [key, node] of keyed) if (!kept.has(key)) node.remove();
  let at = host.firstChild;
  const drop = () => {
    const next = at.nextSibling;
    at.remove();
    at = next;
  };
  for (const node of nodes) {
    const old = keyed.get(keyOf(node));
    // A moved element would lose the focus, so the elements before it are moved instead.
    while (old && at && at !== old && !keyOf(at)) drop();
    if (old && at !== old) host.insertBefore(old, at);
    if (old) {
      at = old.nextSibling;
      morph(old, node);
    } else if (!at || keyOf(at) || keyOf(node)) {
      host.insertBefore(node, at);
    } else {
      const next = at.nextSibling;
      morph(at, node);
      at = next;
    }
  }
  while (at) drop();
}

function morph(node, wanted) {
  if (node === wanted) return;
  if (node.nodeName !== wanted.nodeName || node.dataset?.key !== wanted.dataset?.key) return node.replaceWith(wanted);
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== wanted.data) node.data = wanted.data;
    return;
  }
  for (const { name } of [...node.attributes]) if (!wanted.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    if (name === "style") node.style.cssText = wanted.style.cssText;
    else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  fill(node, ...wanted.childNodes);
}

// A link to another view of the page.
export const link = (to, text, attributes = {}) => el("a", { href: to, ...attributes }, text);
