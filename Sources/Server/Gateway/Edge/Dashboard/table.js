// Tables that are updated in place, with a hint if they are wider than the page.

import { byID, el, fill, link } from "./dom.js";

// A region that scrolls sideways, with a hint while a part of it is hidden.
export function scroller(label, content) {
  const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, content);
  const hint = el("p", { class: "scroll-hint", "aria-hidden": "true", hidden: true },
    "More columns: scroll sideways →");
  const node = el("div", { class: "scroller" }, hint, scroll);
  const look = () => {
    const rest = scroll.scrollWidth - scroll.clientWidth;
    hint.hidden = rest < 2;
    node.classList.toggle("more-left", scroll.scrollLeft > 2);
    node.classList.toggle("more-right", rest - scroll.scrollLeft > 2);
  };
  scroll.addEventListener("scroll", look, { passive: true });
  const observer = new ResizeObserver(look);
  observer.observe(scroll);
  observer.observe(content);
  return node;
}

// A narrow window shows each row as a card: each cell has the name of its column, and empty cells are omitted.
// Roles keep it a table for screen readers.
function label(row, columns, reason) {
  row.setAttribute("role", "row");
  [...row.cells].forEach((cell, index) => {
    cell.dataset.label = columns[index];
    cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
    if (columns[index] === reason) cell.classList.add("reason");
    if (cell.textContent === "–") cell.dataset.nothing = "";
  });
  return row;
}

// - columns: the names of the columns.
// - starts: the columns of text in addition to the first one.
// - reason: the column with the reason, which is first on a card; nil for none.
export function table(host, name, columns, rows, starts = ["Topic"], reason = null) {
  const head = columns.map((column, index) => el("th", { scope: "col", role: "columnheader",
    class: index === 0 || starts.includes(column) ? "start" : null }, column));
  let body = host.querySelector(":scope > .scroller > .scroll > table");
  if (!body) {
    body = el("table", { class: "rows", role: "table" }, el("thead", { role: "rowgroup" }),
      el("tbody", { role: "rowgroup" }));
    host.replaceChildren(scroller(name, body));
  }
  fill(body.tHead, el("tr", { role: "row" }, head));
  fill(body.tBodies[0], ...rows.map((row) => label(row, columns, reason)));
}

export const cell = (text, attributes = {}) => el("td", attributes, text);

// Shows the number of omitted rows below a table.
export function more(host, number, what) {
  const hint = host.querySelector(":scope > .hint");
  if (number <= 0) return hint?.remove();
  (hint ?? host.appendChild(el("p", { class: "hint" }))).textContent = `and ${number.toLocaleString("en")} ${what}`;
}

// Returns a link to a device with the first digits of its token.
export const deviceLink = (token) => link(`#/device/${token}`, `${token.slice(0, 10)}…`,
  { class: "link", title: token, "aria-label": `Device ${token}` });

// The existing topics, as suggestions for an input.
export function suggestTopics(topics) {
  const options = byID("known-topics");
  if ([...options.children].map(({ value }) => value).join("\n") === topics.join("\n")) return;
  options.replaceChildren(...topics.map((topic) => el("option", { value: topic })));
}
