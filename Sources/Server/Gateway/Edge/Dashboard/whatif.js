// The recorded pushes and tasks of a device or a topic, replayed under another policy.

import { Refusal, request } from "./api.js";
import { el, empty, setText, svg } from "./dom.js";
import { count, day, duration, minute, time } from "./format.js";
import { scroller } from "./table.js";

const fields = [
  ["launchInterval", "Launch interval", "s"], ["dailyLaunches", "Launches in a window", ""],
  ["budgetWindow", "Budget window", "s"], ["immediateBurst", "Immediate burst", ""],
  ["immediateRefill", "Immediate refill", "s"], ["executionWindow", "Execution window", "s"],
  ["maxAttempts", "Attempts", ""], ["maxPenalty", "Doublings at most", ""], ["maxInterval", "Longest interval", "s"],
  ["defaultTTL", "Default lifetime", "s"], ["processingInterval", "Processing interval", "s"],
];

// Converts the outcome of a topic to the names in the outcome of a device.
const ofDevice = ({ launches, meanWaitMs, maxWaitMs, tasks, ...counts }) => ({
  ...counts, launched: launches, meanWait: meanWaitMs, maxWait: maxWaitMs, launches: [],
  tasks: tasks && ofDevice(tasks) });

const inks = { newData: "good", noData: "pushes", failed: "warn", expired: "bad", lost: "idle" };

export class WhatIf {
  // - path: the path of a device or a topic.
  constructor(path, isOfTopic = false) {
    this.path = `${path}/what-if`;
    this.isOfTopic = isOfTopic;
    this.inputs = new Map(fields.map(([name]) =>
      [name, el("input", { type: "number", min: "0", step: "any", name, inputmode: "decimal" })]));
    this.run = el("button", { class: "button primary", type: "submit" }, "Replay");
    this.reset = el("button", { class: "button", type: "reset" }, "As in force");
    this.problem = el("p", { class: "late", role: "alert" });
    this.laneHost = el("div", { class: "lanes" });
    new ResizeObserver(() => this.drawLanes()).observe(this.laneHost);
    this.result = el("div", { class: "whatif-result", "aria-live": "polite" });
    const form = el("form", { class: "whatif-form", novalidate: true, onsubmit: (event) => {
      event.preventDefault();
      this.replay();
    }, onreset: () => setTimeout(() => this.replay()) },
    fields.map(([name, title, unit]) =>
      el("label", {}, unit ? `${title} (${unit})` : title, this.inputs.get(name))),
    el("div", { class: "row" }, this.run, this.reset, this.problem));
    this.node = el("section", { class: "panel", "aria-labelledby": "whatif-title" },
      el("h2", { id: "whatif-title" }, "What if the policy were another?"),
      el("p", { class: "hint" }, isOfTopic
        ? "The pushes and tasks of the last day go through the simulator again, device by device; nothing changes."
        : "The recorded pushes and tasks go through the simulator again; nothing of the device changes."),
      form, this.result);
  }

  // Requests a replay under the current policy, whose values fill the form.
  async load() {
    await this.replay({});
  }

  changes() {
    const changes = {};
    for (const [name, input] of this.inputs) {
      if (input.value !== "" && Number(input.value) !== Number(input.placeholder)) changes[name] = Number(input.value);
    }
    return changes;
  }

  async replay(changes = this.changes()) {
    this.run.disabled = true;
    setText(this.problem, "");
    try {
      const answer = await this.ask(changes);
      for (const [name, input] of this.inputs) input.placeholder = String(answer.policy[name]);
      this.show(answer);
    } catch (error) {
      setText(this.problem, error instanceof Refusal ? error.message : "The gateway does not answer.");
    }
    this.run.disabled = false;
  }

  async ask(changes) {
    if (!this.isOfTopic) return request("POST", this.path, { policy: changes });
    const query = new URLSearchParams(changes).toString();
    const answer = await request("GET", query ? `${this.path}?${query}` : this.path);
    return { ...answer, recorded: ofDevice(answer.recorded), replayed: ofDevice(answer.current),
      whatIf: ofDevice(answer.proposed) };
  }

  show(answer) {
    if (answer.pushes + answer.tasks === 0) {
      return this.result.replaceChildren(empty(
        `The history has no push or task of this ${this.isOfTopic ? "topic" : "device"} that could be replayed.`));
    }
    const isChanged = Object.keys(answer.changes).length > 0;
    const lanes = [["As it was", answer.recorded], ["In force", answer.replayed]];
    if (isChanged) lanes.push(["What if", answer.whatIf]);
    this.shown = { answer, lanes };
    this.result.replaceChildren(...(this.isOfTopic ? [] : [this.laneHost]), this.table(lanes, isChanged, answer.tasks),
      this.notes(answer, isChanged));
    if (!this.isOfTopic) this.drawLanes();
  }

  drawLanes() {
    const width = this.laneHost.clientWidth;
    if (width > 0 && this.shown) this.laneHost.replaceChildren(this.lanes(this.shown.answer, this.shown.lanes, width));
  }

  lanes(answer, lanes, width) {
    const left = 74;
    const span = Math.max(answer.until - answer.from, 1000);
    const x = (at) => left + (at - answer.from) / span * (width - left - 14);
    const height = 30 + lanes.length * 40;
    const label = lanes.map(([name, outcome]) => `${name}: ${outcome.launched} launches`).join(", ");
    const frame = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label };
    const picture = svg("svg", frame, lanes.flatMap(([name, outcome], lane) => {
      const y = 22 + lane * 40;
      return [svg("text", { x: 0, y: y + 4 }, name), svg("line", { class: "axis", x1: left, x2: width, y1: y, y2: y }),
        ...outcome.launches.map((launch) => svg("circle",
          { class: `mark ink-${inks[launch.result] ?? "launches"}`, cx: x(launch.at), cy: y, r: 6 },
          svg("title", {},
            `${time(launch.at)} launch, ${launch.coalesced} coalesced, ${launch.result ?? "in flight"}`)))];
    }), svg("text", { x: left, y: height - 6 }, minute(answer.from)),
    svg("text", { x: width, y: height - 6, "text-anchor": "end" }, minute(answer.until)));
    picture.style.blockSize = `${height}px`;
    return picture;
  }

  table(lanes, isChanged, taskCount) {
    const wait = (value) => (value === null ? "–" : duration(value));
    const rows = [
      ["Launches", "launched", count], ["Completed", "completed", count], ["Coalesced", "coalesced", count],
      ["Discarded", "discarded", count], ["Still waiting", "waiting", count],
      ["Mean wait of a push", "meanWait", wait], ["Longest wait", "maxWait", wait],
    ];
    if (taskCount > 0) {
      rows.push(...[
        ["Task launches", "launched", count], ["Tasks ended", "ended", count], ["Tasks replaced", "replaced", count],
        ["Tasks discarded", "discarded", count], ["Tasks waiting", "waiting", count],
        ["Mean wait of a task", "meanWait", wait], ["Longest wait of a task", "maxWait", wait],
      ].map((row) => [...row, ({ tasks }) => tasks]));
    }
    const difference = (name, part) => {
      const [before, after] = [part(lanes[1][1])[name], part(lanes[2][1])[name]];
      return before === after || before === null || after === null ? null : after - before;
    };
    const heads = ["", ...lanes.map(([name]) => name), ...(isChanged ? ["Difference"] : [])];
    return scroller("Outcomes compared",
      el("table", { class: "compare" },
        el("thead", {}, el("tr", {}, heads.map((name) => (name
          ? el("th", { scope: "col" }, name) : el("td", {}))))),
        el("tbody", {}, rows.map(([title, name, format, part = (outcome) => outcome]) => el("tr", {},
          el("th", { scope: "row", class: "start" }, title),
          lanes.map(([, outcome]) => el("td", {}, format(part(outcome)[name]))),
          isChanged ? this.difference(name, difference(name, part), format) : null)))));
  }

  difference(name, value, format) {
    if (value === null) return el("td", { class: "muted" }, "same");
    const isBetter = ["completed", "coalesced", "ended"].includes(name) ? value > 0 : value < 0;
    const sign = value > 0 ? "+" : "−";
    return el("td", { class: isBetter ? "better" : "worse" }, `${sign}${format(Math.abs(value))}`);
  }

  notes(answer, isChanged) {
    const whose = this.isOfTopic ? ` of ${count(answer.devices)} devices` : "";
    const notes = [`${count(answer.pushes)} pushes and ${count(answer.tasks)} tasks${whose} since ${day(answer.from)}; `
      + "workers answer as they did."];
    if (this.isOfTopic) {
      notes.push(`${count(answer.examined)} of ${count(answer.registered)} registered devices were looked at.`);
    }
    if (!answer.isWhole) notes.push(this.isOfTopic ? "Not everything was replayed."
      : "Older ones are beyond what is replayed.");
    if (answer.assumed > 0) notes.push(`${count(answer.assumed)} were recorded without priority: 5 is assumed.`);
    if (answer.conditionReports > 0) {
      notes.push("Some conditions were recorded without values: the replay does not know their holds.");
    }
    if (!isChanged) notes.push("Set a parameter to compare.");
    return el("p", { class: "hint" }, notes.join(" "));
  }
}
