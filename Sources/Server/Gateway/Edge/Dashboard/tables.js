// The tables of topics, workers, gateways on the same database, and of the gateway itself.

import { badge, byID, el, empty, fact, fill, link, setText, track } from "./dom.js";
import { bytes, count, duration, moment, percent, rate, sum } from "./format.js";
import { address } from "./route.js";
import { cell, more, table } from "./table.js";
import { switchCell } from "./topicswitch.js";

export const workerStates = {
  free: ["free", "good"], busy: ["busy", "warn"], full: ["full", "warn"], paused: ["not reading", "bad"],
  stalled: ["stalled", "bad"], draining: ["stopping", "idle"],
};
// A wake that has run for more than this share of its window is highlighted.
const lateShare = 0.5;
// A gateway sends a heartbeat each second. One without a heartbeat for this many milliseconds is highlighted.
const lateLag = 3000;

const slots = (busy, all) => el("td", {}, all === 0 ? el("span", { class: "muted" }, "none")
  : el("span", { class: "meter" }, `${count(busy)} of ${count(all)}`,
    track(busy / all, busy >= all ? "warn" : "launches")));

// Returns the growth of counters per second since the previous event.
class Rates {
  before = new Map();

  update(key, at, values) {
    const last = this.before.get(key);
    if (last && at <= last.at) return last.rates;
    const seconds = last ? (at - last.at) / 1000 : 0;
    const smooth = (value, index) => {
      const now = Math.max(0, value - last.values[index]) / seconds;
      return last.rates ? last.rates[index] * 0.6 + now * 0.4 : now;
    };
    const rates = last ? values.map(smooth) : null;
    this.before.set(key, { at, values, rates });
    return rates;
  }

  forget(keys) {
    for (const key of this.before.keys()) if (!keys.has(key)) this.before.delete(key);
  }
}

const topicRates = new Rates();
const workerRates = new Rates();
const gatewayRates = new Rates();

// Returns a number that links to the list of the counted objects; 0 has no link.
const counted = (number, to, title, attributes = {}) =>
  el("td", attributes, number > 0 ? link(to, count(number), { title }) : "0");

const shown = (rates, index) => (rates ? rate(rates[index] < 0.005 ? 0 : rates[index]) : "–");

function updateTopics(event) {
  const host = byID("topics");
  const topics = event.topics.listed;
  if (topics.length === 0) {
    return fill(host, empty("No topic yet. The first one comes with the first push or worker, for example ",
      el("code", {}, "wakegate worker --topic com.example.app -- cat"), "."));
  }
  topicRates.forget(new Set(topics.map((topic) => topic.topic)));
  table(host, "Table of topics",
    ["Topic", "Devices", "Pushes/s", "Launches/s", "Per launch", "Waiting", "Held", "No slot", "Slots busy", "Workers",
      "Launches"],
    topics.map((topic) => {
      const rates = topicRates.update(topic.topic, event.at, [topic.accepted, topic.launched]);
      const ended = topic.completed + topic.coalesced;
      const devices = (filters) => address("devices", "", { topic: topic.topic, ...filters });
      const late = { class: "late" };
      return el("tr", { "data-key": topic.topic }, el("th", { scope: "row", class: "start" },
        link(address("topic", topic.topic), topic.topic,
          { title: `What another policy would change for ${topic.topic}` }),
        topic.webhook ? el("span", { class: "muted" }, ` webhook ${topic.webhook.state}`) : null),
      counted(topic.devices, devices({}), `Devices of ${topic.topic}`),
      el("td", {}, link(address("pushes", "", { topic: topic.topic }), shown(rates, 0),
        { title: `Pushes of ${topic.topic}` })),
      cell(shown(rates, 1)), cell(topic.launched > 0 ? rate(ended / topic.launched) : "–"),
      counted(topic.pending, devices({ sort: "waiting" }), `Devices of ${topic.topic} with a pending push`),
      counted(topic.held, devices({ state: "held" }), `Devices of ${topic.topic} that are held back`),
      counted(topic.waiting, devices({ hold: "worker" }), `Devices of ${topic.topic} without a free slot`,
        topic.waiting > 0 ? late : {}), slots(topic.busy, topic.slots),
      counted(topic.workers, address("workers", "", { topic: topic.topic }), `Workers of ${topic.topic}`,
        topic.workers === 0 && topic.waiting > 0 ? late : {}),
      switchCell(topic));
    }));
  more(host, event.topics.count - topics.length, "topics with fewer pushes");
}

// Returns the wakes to which a worker subscribed.
function takes({ pushes, tasks, sessions, resources, devices }) {
  const names = [...(pushes ? ["pushes"] : []), ...tasks, ...sessions.map((name) => `session ${name}`),
    ...resources.map((name) => `has ${name}`)];
  return `${names.join(", ") || "nothing"}${devices ? ` of ${count(devices)} named devices` : ""}`;
}

// Shows workers of a live event in a table.
export function workerTable(host, workers, event) {
  const order = (a, b) => a.topic.localeCompare(b.topic) || a.name.localeCompare(b.name)
    || a.stream.localeCompare(b.stream, "en", { numeric: true });
  workerRates.forget(new Set(event.streams.listed.map((worker) => worker.stream)));
  if (!host.querySelector("table")) fill(host);
  table(host, "Table of workers",
    ["Worker", "Topic", "Slots busy", "Wakes/s", "Wakes", "Oldest wake", "Takes", "State"],
    workers.toSorted(order).map((worker) => {
      const rates = workerRates.update(worker.stream, event.at, [worker.wakes]);
      const [text, ink] = workerStates[worker.state] ?? [worker.state, "idle"];
      const isLate = worker.lag !== null && worker.lag > worker.executionWindow * lateShare;
      const to = address("devices", "", { topic: worker.topic, state: "inFlight" });
      return el("tr", { "data-key": worker.stream },
        el("th", { scope: "row", class: "start" }, worker.name || `stream ${worker.stream}`),
        el("td", { class: "start" }, link(to, worker.topic,
          { title: `Devices of ${worker.topic} with a wake in flight` })),
        slots(worker.busy, worker.slots), cell(shown(rates, 0)),
        cell(count(worker.wakes)),
        cell(worker.lag === null ? "–" : duration(worker.lag), isLate ? { class: "late" } : {}),
        el("td", { class: "start" }, takes(worker.takes)),
        el("td", worker.reason ? { class: "words" } : {}, badge(text, ink),
          worker.reason ? el("p", { class: "hint" }, worker.reason) : null));
    }), ["Topic", "Takes"], "State");
}

function updateWorkers(event) {
  const host = byID("workers");
  const workers = event.streams.listed;
  if (workers.length === 0) {
    return fill(host, empty("No worker is subscribed, so nothing can be woken. Start one with ",
      el("code", {}, "wakegate worker --topic com.example.app -- COMMAND"), "."));
  }
  workerTable(host, workers, event);
  more(host, event.streams.count - workers.length, "workers that hold fewer wakes");
}

function memberState(member) {
  if (member.draining) return badge("stopping", "idle");
  return member.lag > lateLag ? badge("silent", "bad") : badge("alive", "good");
}

function updateMembers({ stats }) {
  const { gateways, configurationDifferences } = stats;
  byID("members").hidden = !gateways;
  if (!gateways) return;
  table(byID("members-table"), "Table of gateways",
    ["Gateway", "Number", "Version", "Since", "Workers", "Slots busy", "Wakes", "Lag", "State"],
    gateways.map((member) => el("tr", { "data-key": String(member.number) },
      el("th", { scope: "row", class: "start" }, member.name,
        member.own ? el("span", { class: "muted" }, " this one") : null),
      cell(String(member.number)), cell(member.version, { class: "start" }),
      cell(moment(Date.parse(member.since)), { class: "start" }), cell(count(member.workers)),
      slots(member.busy, member.slots), cell(count(member.wakes)),
      cell(duration(member.lag), member.lag > lateLag ? { class: "late" } : {}), el("td", {}, memberState(member)))),
    ["Version", "Since"]);
  const notice = byID("members-notice");
  notice.hidden = configurationDifferences.length === 0;
  setText(notice, notice.hidden ? ""
    : `Not the same in all of them, although they decide by it: ${configurationDifferences.join(", ")}.`);
}

function updateHealth(event) {
  const { gateway, stats } = event;
  const { pushes } = stats;
  const found = pushes.completed + pushes.coalesced + sum(pushes.discarded) + pushes.pending + pushes.inFlight;
  const cpu = gatewayRates.update("cpu", event.at, [gateway.cpu])?.[0];
  const limits = Object.entries(stats.limits ?? {});
  fill(byID("health"), el("dl", { class: "facts" },
    fact("State", badge(gateway.state, { ready: "good", draining: "warn" }[gateway.state] ?? "bad")),
    fact("Running for", duration(gateway.uptime * 1000)),
    fact("Connections", count(gateway.connections)),
    fact("Memory", bytes(gateway.memory)),
    fact("Processor", cpu === undefined ? "–" : percent(cpu / 1000)),
    fact("Devices", count(stats.devices.registered)),
    fact("Accounted for", pushes.accepted === found ? "every push"
      : badge(`${count(pushes.accepted - found)} pushes amiss`, "bad")),
    fact("Version", `${gateway.version} (${gateway.build}, ${gateway.commit ? `commit ${gateway.commit}` : "commit unknown"})`),
    el("div", { class: "wide" }, el("dt", {}, "Bounds met since the start"),
      el("dd", {}, limits.length === 0 ? "none"
        : limits.map(([name, number]) => `${name} ${count(number)}`).join(", ")))));
}

export function updateTables(event) {
  updateTopics(event);
  updateWorkers(event);
  updateMembers(event);
  updateHealth(event);
}
