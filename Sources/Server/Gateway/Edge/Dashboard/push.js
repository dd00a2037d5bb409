// The way of one push.

import { badge, el, link } from "./dom.js";
import { count, day, duration } from "./format.js";
import { address } from "./route.js";
import { eventList } from "./timeline.js";

const states = {
  pending: ["waiting", "warn"], inFlight: ["in flight", "launches"], completed: ["completed", "good"],
  noWake: ["no wake", "idle"], coalesced: ["coalesced", "merged"], discarded: ["discarded", "bad"],
};

export const pushState = ({ state, reason }) => {
  const [text, ink] = states[state] ?? [state, "idle"];
  return badge(reason ? `${text}: ${reason}` : text, ink);
};

// Whether nothing more happens to a push.
export const hasEnded = ({ state }) => state !== "pending" && state !== "inFlight";

function facts({ priority, payloadBytes, attempts, worker, held, waited }) {
  const waits = Object.entries({ interval: waited?.interval, ...waited?.hold, worker: waited?.worker })
    .filter(([, time]) => time > 0).map(([name, time]) => `${duration(time)} (${name})`);
  return [priority ? ` Priority ${priority}.` : "", payloadBytes ? ` ${count(payloadBytes)} bytes.` : "",
    attempts ? ` Launched ${attempts === 1 ? "once" : `${attempts} times`}` : " Not launched",
    worker ? `, last to the worker ${worker}.` : ".",
    held?.length > 0 ? ` Held by ${held.join(", ")}.` : "",
    waits.length > 0 ? ` Waited ${waits.join(", ")}.` : ""].join("");
}

export function pushPanel(push, close) {
  return el("div", { class: "panel" },
    el("div", { class: "inspector-head" },
      el("div", {}, el("h2", { id: "inspector-title" }, "Push ", pushState(push)),
        el("p", { class: "token" }, push.apnsID)),
      el("div", { class: "row" }, close)),
    el("p", { class: "why" }, push.receivedAt ? `Received ${day(push.receivedAt)}.`
      : "It was received before the history begins.",
    push.device ? [" It is for ", link(address("device", push.device), "this device", { title: push.device }),
      push.topic ? ` of ${push.topic}.` : "."] : null,
    push.into ? [" It was coalesced into ", link(address("push", push.into), "this push", { title: push.into }), "."]
      : null,
    facts(push)),
    eventList(push.events));
}
