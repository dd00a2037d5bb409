// A list of devices or pushes: filters from the address, a page of rows, and a link to the next page.

import { explain, request } from "./api.js";
import { el, empty, fill, link, setText } from "./dom.js";
import { count } from "./format.js";
import { address, go } from "./route.js";
import { table } from "./table.js";

// The number of rows in a page.
const rowsMax = 50;
// A page of the gateway may be short or empty. This is the number of pages that are loaded before the user is asked
// whether to continue.
const stepsMax = 20;
// The minimum interval between requests for a list, and the maximum share of the gateway's time that they use.
const pauseMilliseconds = 4000;
const timeShare = 0.05;

export class ListView {
  // - name: the name of the view in the address, and of the list in the answer.
  // - filters: the input element of each filter, by name.
  // - columns, starts, reason: see `table`; `row` returns the row of an entry.
  // - question: returns the query of the route for the filters of an address.
  constructor({ name, title, filters, columns, starts, reason, row, question = (values) => values, extra = null,
    none }) {
    Object.assign(this, { name, filters, columns, starts, reason, row, question, none });
    this.title = title;
    this.heading = el("h2", { id: `${name}-title`, tabindex: "-1" }, title);
    this.host = el("div");
    this.status = el("p", { class: "hint", role: "status" });
    this.next = link("#/", "Next page", { class: "button", hidden: true });
    this.first = link("#/", "First page", { class: "button", hidden: true });
    const form = el("form", { class: "filters", onsubmit: (event) => {
      event.preventDefault();
      this.apply();
    }, onchange: () => this.apply() },
    Object.entries(filters).map(([filter, { label, input }]) => {
      input.id = `${name}-${filter}`;
      return el("div", { class: "filter" }, el("label", { for: input.id }, label), input);
    }),
    el("div", { class: "row" }, el("button", { class: "button", type: "submit" }, "Show"),
      el("button", { class: "button", type: "button", onclick: () => go(address(name)) }, "Clear")));
    this.node = el("section", { class: "panel", "aria-labelledby": `${name}-title` },
      el("div", { class: "section-head" }, this.heading, extra), form, this.host, this.status,
      el("div", { class: "row" }, this.first, this.next));
    this.turn = 0;
  }

  apply() {
    const values = Object.entries(this.filters).map(([filter, { input }]) => [filter, input.value.trim()]);
    const to = address(this.name, "", Object.fromEntries(values));
    if (to !== location.hash) go(to);
    else this.refresh();
  }

  async show(values) {
    this.values = values;
    this.turn += 1;
    this.isShown = true;
    fill(this.host);
    setText(this.status, "Asking the gateway.");
    for (const [filter, { input }] of Object.entries(this.filters)) setValue(input, values[filter] ?? "");
    this.first.hidden = !values.after;
    this.first.href = address(this.name, "", { ...values, after: "" });
    this.next.hidden = true;
    this.heading.focus({ preventScroll: true });
    await this.refresh();
  }

  hide() {
    this.turn += 1;
    this.isShown = false;
    clearTimeout(this.timer);
    fill(this.host);
  }

  async refresh() {
    const mine = this.turn += 1;
    clearTimeout(this.timer);
    const began = performance.now();
    try {
      const { rows, next } = await this.page(mine);
      if (mine !== this.turn) return;
      this.draw(rows, next);
    } catch (error) {
      if (mine !== this.turn) return;
      setText(this.status, explain(error, `list ${this.name}`));
      if (error.status === 404) return;
    }
    const now = performance.now();
    this.timer = setTimeout(() => (document.hidden ? this.wait() : this.refresh()),
      Math.max(pauseMilliseconds, (now - began) / timeShare));
  }

  // A hidden page sends no requests.
  wait() {
    document.addEventListener("visibilitychange", () => this.isShown && this.refresh(), { once: true });
  }

  async page(mine) {
    const rows = [];
    let { after } = this.values;
    for (let step = 0; step < stepsMax; step += 1) {
      const asked = Object.entries({ ...this.question(this.values), limit: rowsMax - rows.length, after });
      const query = new URLSearchParams(asked.filter(([, value]) => value));
      const answer = await request("GET", `/v1/${this.name}?${query}`);
      if (mine !== this.turn) break;
      rows.push(...answer[this.name]);
      after = answer.next;
      if (!after || rows.length >= rowsMax) break;
    }
    return { rows, next: after };
  }

  draw(rows, next) {
    this.next.hidden = !next;
    this.next.href = address(this.name, "", { ...this.values, after: next });
    if (rows.length === 0) {
      fill(this.host, empty(next ? "None so far; the next page looks on." : this.none));
      return setText(this.status, "");
    }
    if (!this.host.querySelector("table")) fill(this.host);
    table(this.host, `Table of ${this.name}`, this.columns, rows.map(this.row), this.starts, this.reason);
    setText(this.status, `${count(rows.length)} ${next ? "on this page; there are more." : "on this page, the last."}`);
  }
}

// Sets a filter from the address. A value that is not among the choices is added, so that the gateway can report the
// error.
function setValue(input, value) {
  if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) {
    input.append(el("option", { value }, value));
  }
  input.value = value;
}

export const choice = (choices) =>
  el("select", {}, choices.map(([value, text]) => el("option", { value }, text)));

export const topicInput = () => el("input", { type: "search", list: "known-topics", autocomplete: "off",
  autocapitalize: "off", spellcheck: "false", placeholder: "every" });
