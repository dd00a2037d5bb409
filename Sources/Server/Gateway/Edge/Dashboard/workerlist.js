// The list of workers in the live stream, filtered by topic, name and state.

import { el, empty, fill, setText } from "./dom.js";
import { count } from "./format.js";
import { choice, topicInput } from "./listview.js";
import { address, go } from "./route.js";
import { workerStates, workerTable } from "./tables.js";

export class WorkerList {
  constructor() {
    this.heading = el("h2", { id: "all-workers-title", tabindex: "-1" }, "Workers");
    this.status = el("p", { class: "hint", role: "status" });
    this.host = el("div");
    const text = { type: "search", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      placeholder: "every" };
    this.inputs = { topic: topicInput(), name: el("input", text),
      state: choice([["", "every"], ...Object.entries(workerStates).map(([state, [words]]) => [state, words])]) };
    const names = { topic: "Topic", name: "Name contains", state: "State" };
    const form = el("form", { class: "filters", onsubmit: (event) => {
      event.preventDefault();
      this.apply();
    }, onchange: () => this.apply() }, Object.entries(this.inputs).map(([name, input]) => {
      input.id = `workers-${name}`;
      return el("div", { class: "filter" }, el("label", { for: input.id }, names[name]), input);
    }),
    el("div", { class: "row" }, el("button", { class: "button", type: "submit" }, "Show"),
      el("button", { class: "button", type: "button", onclick: () => go(address("workers")) }, "Clear")));
    this.node = el("section", { class: "panel", "aria-labelledby": "all-workers-title" },
      el("div", { class: "section-head" }, this.heading), form, this.host, this.status);
  }

  apply() {
    const values = Object.entries(this.inputs).map(([name, input]) => [name, input.value.trim()]);
    const to = address("workers", "", Object.fromEntries(values));
    if (to !== location.hash) go(to);
  }

  async show(values) {
    this.values = values;
    this.isShown = true;
    for (const [name, input] of Object.entries(this.inputs)) input.value = values[name] ?? "";
    this.heading.focus({ preventScroll: true });
    setText(this.status, "Waiting for the gateway.");
    if (this.latest) this.draw();
  }

  hide() {
    this.isShown = false;
    fill(this.host);
  }

  // Updates the list from a sample of the live stream.
  update(event) {
    this.latest = event;
    if (this.isShown) this.draw();
  }

  draw() {
    const { streams } = this.latest;
    const { topic = "", name = "", state = "" } = this.values;
    const shown = streams.listed.filter((worker) => (!topic || worker.topic === topic)
      && worker.name.includes(name) && (!state || worker.state === state));
    if (shown.length > 0) workerTable(this.host, shown, this.latest);
    else fill(this.host, empty(streams.count === 0 ? "No worker is subscribed." : "No listed worker is like that."));
    const unlisted = streams.count - streams.listed.length;
    setText(this.status, `${count(shown.length)} of ${count(streams.count)} workers of this gateway${
      unlisted > 0 ? `; the ${count(unlisted)} that hold the fewest wakes are not listed` : ""}.`);
  }
}
