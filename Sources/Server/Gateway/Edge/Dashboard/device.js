// One device: why it is not woken, when it may be, its events, and the actions of an operator.

import { Refusal, request } from "./api.js";
import { DeviceTasks } from "./devicetasks.js";
import { DiagnosisPanel } from "./diagnosis.js";
import { badge, el, empty, fact, link, setText } from "./dom.js";
import { clock, count, day, duration, local, moment } from "./format.js";
import { pushState } from "./push.js";
import { address } from "./route.js";
import { strip } from "./strip.js";
import { TestPush } from "./testpush.js";
import { eventList } from "./timeline.js";
import { WaitingPush } from "./waiting.js";
import { WhatIf } from "./whatif.js";
import { holdInk, holdName } from "./words.js";

const refreshMilliseconds = 2000;

const conditionNames = {
  appState: "App", backgroundRefresh: "Background refresh", batteryLevel: "Battery", charging: "Charging",
  lowPowerMode: "Low power mode", thermalState: "Heat", memoryPressure: "Memory pressure",
  network: "Network",
};

function conditionText(name, value) {
  if (name === "batteryLevel") return `${Math.round(value * 100)} %`;
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

export class DevicePanel {
  constructor(token, close) {
    this.token = token.toLowerCase();
    this.path = `/v1/devices/${this.token}`;
    this.outcome = el("p", { class: "hint", role: "status" });
    this.launch = this.button("Simulate launch", "simulate-launch", "A wake is on its way to a worker.");
    this.expire = this.button("Simulate expiration", "simulate-expiration", "The wake was ended as expired.");
    this.expire.classList.add("danger");
    this.why = el("p", { class: "why" });
    this.clock = el("p", { class: "clock", role: "timer" });
    this.clockTitle = el("p", { class: "muted" });
    this.clockNote = el("p", { class: "hint" });
    this.strip = el("div", { class: "strip" });
    this.facts = el("dl", { class: "facts" });
    this.events = el("div");
    this.older = el("button", { class: "button", type: "button", onclick: () => this.page() }, "Older");
    this.newest = el("button", { class: "button", type: "button", hidden: true, onclick: () => {
      this.shown = null;
      this.drawEvents();
    } }, "Newest");
    this.pushes = el("div");
    this.tasks = new DeviceTasks(this.path, () => this.refresh());
    this.waiting = new WaitingPush(this.path, () => this.refresh());
    this.diagnosis = new DiagnosisPanel(this.path);
    this.whatIf = new WhatIf(this.path);
    this.title = el("h2", { id: "inspector-title" }, "Device");
    this.testHost = el("div");
    this.nodes = [this.overview(close), this.waiting.node, this.tasks.node, this.diagnosis.node, this.past(),
      this.testHost, this.whatIf.node];
    new ResizeObserver(() => this.drawStrip()).observe(this.strip);
    this.timers = [setInterval(() => this.tick(), 250), setInterval(() => this.refresh(), refreshMilliseconds)];
  }

  overview(close) {
    return el("div", { class: "panel" },
      el("div", { class: "inspector-head" },
        el("div", {}, this.title, el("p", { class: "token" }, this.token)),
        el("div", { class: "row" }, this.launch, this.expire, close)),
      this.outcome, this.why,
      el("div", { class: "split" },
        el("div", { class: "countdown" }, this.clockTitle, this.clock, this.clockNote),
        el("div", {}, this.strip, this.facts)));
  }

  past() {
    return el("div", { class: "columns" },
      el("div", { class: "panel" }, el("h2", {}, "What happened"), this.events,
        el("div", { class: "row" }, this.newest, this.older)),
      el("div", { class: "panel" }, el("h2", {}, "Its pushes"), this.pushes));
  }

  // Appends older events to the list. Until the user asks for the newest again, no new ones are added.
  async page() {
    this.older.disabled = true;
    const limit = this.shown ? 100 : this.explain.recent.length + 100;
    try {
      const before = this.shown ? `&before=${this.shown.next}` : "";
      const { events, next } = await request("GET", `${this.path}/events?limit=${limit}${before}`);
      this.shown = { events: [...this.shown?.events ?? [], ...events], next };
      const top = this.events.firstElementChild?.scrollTop ?? 0;
      this.drawEvents();
      this.events.firstElementChild.scrollTop = top;
    } catch (error) {
      setText(this.outcome, error instanceof Refusal ? error.message : "The gateway does not answer.");
    }
    this.older.disabled = false;
  }

  drawEvents() {
    const events = this.shown?.events ?? this.explain.recent;
    this.newest.hidden = !this.shown;
    this.older.hidden = this.shown ? !this.shown.next : events.length === 0;
    this.events.replaceChildren(events.length > 0 ? eventList(events)
      : empty("The history has nothing of this device."));
  }

  button(text, action, done) {
    const button = el("button", { class: "button", type: "button", onclick: async () => {
      button.disabled = true;
      try {
        await request("POST", `${this.path}/${action}`);
        setText(this.outcome, done);
      } catch (error) {
        setText(this.outcome, error instanceof Refusal ? error.message : "The gateway does not answer.");
      }
      button.disabled = false;
      await this.refresh();
    } }, text);
    return button;
  }

  stop() {
    this.timers.forEach(clearInterval);
    this.test?.stop();
  }

  async load() {
    try {
      await this.ask();
      await this.whatIf.load();
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  async ask() {
    const [explain, pushes] = await Promise.all([
      request("GET", this.path), request("GET", `${this.path}/pushes`), this.diagnosis.load(),
    ]);
    this.show(explain, pushes.pushes);
  }

  async refresh() {
    if (document.hidden) return;
    try {
      await this.ask();
    } catch (error) {
      if (error instanceof Refusal) setText(this.outcome, error.message);
    }
  }

  show(explain, pushes) {
    this.explain = explain;
    setText(this.title, `Device of ${explain.topic}`);
    if (!this.test) {
      this.test = new TestPush(this.token, { topic: explain.topic, sent: () => this.refresh() });
      this.testHost.append(this.test.node);
    }
    this.waiting.update(explain);
    setText(this.why, local(explain.why));
    this.drawStrip();
    this.tick();
    this.showFacts(explain);
    this.tasks.show(explain);
    // Lists without changes are not redrawn, because the user may be reading them or about to click.
    const mark = JSON.stringify([explain.recent[0], explain.recent.length, pushes]);
    if (mark === this.mark) return;
    this.mark = mark;
    if (!this.shown) this.drawEvents();
    this.pushes.replaceChildren(pushes.length > 0 ? this.pushList(pushes) : empty("The history has no push to it."));
  }

  pushList(pushes) {
    return el("ol", { class: "events", tabindex: "0", "aria-label": "Pushes, the newest first" }, pushes.map((push) =>
      el("li", { class: "ink-pushes" },
        el("time", {}, push.receivedAt ? moment(push.receivedAt) : "earlier"),
        el("span", { class: "pin", "aria-hidden": "true" }),
        el("div", {}, pushState(push), el("div", {},
          link(address("push", push.apnsID), push.apnsID, { class: "link" }))))));
  }

  drawStrip() {
    const width = this.strip.clientWidth;
    if (width > 0 && this.explain) this.strip.replaceChildren(strip(this.explain, Date.now(), width));
  }

  showFacts(explain) {
    const { conditions, pending, inFlight } = explain;
    this.facts.replaceChildren(
      fact("Last launch", explain.lastLaunchAt ? moment(explain.lastLaunchAt) : "never"),
      fact("Launches in window", count(explain.launchesInWindow)),
      fact("Penalty", explain.penalty > 0 ? `interval × ${2 ** explain.penalty}` : "none"),
      fact("Waiting", pending ? `priority ${pending.priority}, ${count(pending.coalesced)} coalesced` : "nothing"),
      fact("Held back", explain.held.map(holdName).join(", ") || "no"),
      fact("In flight", inFlight ? `since ${moment(inFlight.launchedAt)}` : "nothing"),
      fact("Registered", explain.registeredAt ? day(explain.registeredAt) : "removed"),
      ...Object.entries(conditions).map(([name, value]) =>
        fact(conditionNames[name] ?? name, conditionText(name, value))));
  }

  tick() {
    const { explain } = this;
    if (!explain) return;
    const now = Date.now();
    this.tasks.tick(now);
    const left = (explain.nextEligibleAt ?? 0) - now;
    const holds = explain.held.map((code) => badge(holdName(code), holdInk(code)));
    if (explain.inFlight) {
      this.count("A wake is in flight", clock(explain.inFlight.deadline - now), "until it expires unanswered");
    } else if (explain.held.length > 0) {
      this.count("Held back", "–", ...holds);
    } else if (left > 0) {
      this.count("Next eligible launch in", clock(left),
        `${day(explain.nextEligibleAt)}${explain.pending ? "" : "; nothing waits for it"}`);
    } else {
      this.count("Next eligible launch", "now", explain.pending
        ? `waited for ${duration(now - explain.pending.firstReceivedAt)}`
        : this.diagnosis.verdict);
    }
  }

  count(title, text, ...note) {
    setText(this.clockTitle, title);
    setText(this.clock, text);
    if (this.clockNote.textContent !== note.map((part) => part.textContent ?? part).join("")) {
      this.clockNote.replaceChildren(...note);
    }
  }
}
