// Live events that match the filters, newest first.

import { explain, follow, Refusal } from "./api.js";
import { badge, el, empty, fill, link, setText } from "./dom.js";
import { count, time } from "./format.js";
import { topicInput } from "./listview.js";
import { seen, whileSeen } from "./live.js";
import { address, go } from "./route.js";
import { cell, deviceLink, table } from "./table.js";
import { outcomeNames, resultNames } from "./words.js";

// The maximum number of rows.
const rowsMax = 200;
// The gateway sends a comment every 15 seconds. A longer silence means that the connection is broken.
const silence = 40_000;
const retryMilliseconds = 2000;

const inks = {
  push: "pushes", refused: "bad", launched: "launches", discarded: "bad", registered: "idle", removed: "idle",
  paused: "warn", resumed: "good", submitted: "pushes", taskRefused: "bad", finished: "idle", conditions: "idle",
  subscribed: "good", missed: "warn",
};
const suggestions = [...new Set([...Object.keys(inks), ...Object.keys(resultNames), ...Object.keys(outcomeNames)])]
  .filter((word) => word !== "missed");

function inkOf({ event, outcome }) {
  return event === "result" ? resultNames[outcome]?.[1] ?? outcomeNames[outcome]?.[1] ?? "idle" : inks[event] ?? "idle";
}

// Returns the text of an event's fields other than its name, topic, device and push.
const wordsOf = ({ disposition, outcome, reason, detail }) =>
  [...new Set([disposition, outcome, reason, detail].filter((word) => word))].join(", ");

const row = ({ number, told }) => el("tr", { "data-key": String(number) },
  cell(time(told.at), { class: "start" }),
  el("td", { class: "start" }, badge(told.event, inkOf(told))),
  cell(wordsOf(told), { class: "start words" }),
  el("td", { class: "start" }, told.device ? deviceLink(told.device) : "–"),
  cell(told.topic ?? "–", { class: "start" }),
  el("td", { class: "start" }, told.apnsID
    ? link(address("push", told.apnsID), `${told.apnsID.slice(0, 8)}…`, { class: "link", title: told.apnsID,
      "aria-label": `Push ${told.apnsID}` }) : "–"));

export class Feed {
  constructor() {
    this.rows = [];
    this.numbers = 0;
    this.isHeld = false;
    this.heading = el("h2", { id: "events-title", tabindex: "-1" }, "Events");
    this.status = el("p", { class: "hint", role: "status" });
    this.host = el("div");
    this.hold = el("button", { class: "button", type: "button", "aria-pressed": "false", onclick: () => this.pause() },
      "Pause");
    const text = (placeholder, list) => el("input", { type: "search", autocomplete: "off", autocapitalize: "off",
      spellcheck: "false", placeholder, list });
    this.inputs = { topic: topicInput(), device: text("every"), outcome: text("every", "known-outcomes") };
    const names = { topic: "Topic", device: "Device", outcome: "Outcome or reason" };
    const form = el("form", { class: "filters", onsubmit: (event) => {
      event.preventDefault();
      this.apply();
    }, onchange: () => this.apply() }, Object.entries(this.inputs).map(([name, input]) => {
      input.id = `events-${name}`;
      return el("div", { class: "filter" }, el("label", { for: input.id }, names[name]), input);
    }), el("datalist", { id: "known-outcomes" }, suggestions.map((value) => el("option", { value }))),
    el("div", { class: "row" }, el("button", { class: "button", type: "submit" }, "Show"),
      el("button", { class: "button", type: "button", onclick: () => go(address("events")) }, "Clear")));
    this.node = el("section", { class: "panel", "aria-labelledby": "events-title" },
      el("div", { class: "section-head" }, this.heading, this.hold), form, this.status, this.host);
  }

  apply() {
    const values = Object.entries(this.inputs).map(([name, input]) => [name, input.value.trim()]);
    const to = address("events", "", Object.fromEntries(values));
    if (to !== location.hash) go(to);
  }

  async show(values) {
    this.stop();
    this.rows = [];
    for (const [name, input] of Object.entries(this.inputs)) input.value = values[name] ?? "";
    this.draw();
    this.heading.focus({ preventScroll: true });
    this.ending = new AbortController();
    this.keepFollowing(values, this.ending.signal);
  }

  hide() {
    this.stop();
    fill(this.host);
  }

  stop() {
    this.ending?.abort();
    this.ending = null;
  }

  pause() {
    this.isHeld = !this.isHeld;
    this.hold.setAttribute("aria-pressed", String(this.isHeld));
    setText(this.hold, this.isHeld ? "Go on" : "Pause");
    if (!this.isHeld) this.draw();
  }

  async keepFollowing(values, signal) {
    const query = new URLSearchParams(Object.entries(values).filter(([name, value]) => value && name in this.inputs));
    const path = `/v1/events${query.size > 0 ? `?${query}` : ""}`;
    while (!signal.aborted) {
      try {
        const isOver = await whileSeen((unseen) =>
          follow(path, { silence, signal: AbortSignal.any([signal, unseen]) },
            (told, name) => this.take(told, name),
            () => setText(this.status, "What happens from now on is shown as it happens.")));
        if (signal.aborted) return;
        if (!isOver) {
          this.add({ at: Date.now(), event: "missed", detail: "the page was not in sight from here on" });
          await seen();
          this.draw();
          continue;
        }
        setText(this.status, "The gateway ended the stream; it is asked again.");
      } catch (error) {
        if (signal.aborted) return;
        setText(this.status, explain(error, "show events as they happen"));
        if (error instanceof Refusal && error.status < 429) return;
      }
      await new Promise((resolve) => {
        setTimeout(resolve, retryMilliseconds);
      });
    }
  }

  take(told, name) {
    const missed = () => ({ at: Date.now(), event: "missed", detail: `${count(told.count)} events, too many at once` });
    this.add(name === "missed" ? missed() : told);
  }

  add(told) {
    this.numbers += 1;
    this.rows.unshift({ number: this.numbers, told });
    this.rows.length = Math.min(this.rows.length, rowsMax);
    if (this.isHeld || this.isDrawing) return;
    // Events that arrive together are drawn together.
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      if (this.ending && !this.isHeld) this.draw();
    });
  }

  draw() {
    if (this.rows.length === 0) return fill(this.host, empty("Nothing has happened yet since this was opened."));
    if (!this.host.querySelector("table")) fill(this.host);
    table(this.host, "Table of events", ["Time", "Event", "What", "Device", "Topic", "Push"], this.rows.map(row),
      ["Event", "What", "Device", "Topic", "Push"], "What");
  }
}
