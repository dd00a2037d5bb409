// The history of one push.

import { Refusal, request } from "./api.js";
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

// Returns true if a push has ended.
export const hasEnded = ({ state }) => state !== "pending" && state !== "inFlight";

// The maximum number of pushes to follow from a coalesced push.
const hopsMax = 1000;

// Returns the last push of the chain into which a push was coalesced; otherwise the push.
// - goesOn: returns true while the result is needed.
export async function pushHeir(push, goesOn) {
  const device = push.device ? `?device=${push.device}` : "";
  let heir = push;
  try {
    for (let hop = 0; heir.into && hop < hopsMax && goesOn(); hop += 1) {
      heir = await request("GET", `/v1/pushes/${heir.into}${device}`);
    }
  } catch (error) {
    // The history may have forgotten the rest.
    if (!(error instanceof Refusal)) throw error;
  }
  return heir;
}

const waitText = (waited) => Object.entries({ interval: waited?.interval, ...waited?.hold, worker: waited?.worker })
  .filter(([, time]) => time > 0).map(([name, time]) => `${duration(time)} (${name})`).join(", ");

// Returns the outcome of a coalesced push.
function heirText(push, heir) {
  if (heir === push) return [" It was coalesced into ", pushLink(push.into, "this push"), "."];
  const launch = heir.events.findLast(({ event }) => event === "launched");
  const [end] = states[heir.state] ?? [heir.state];
  const waits = waitText(heir.waited);
  return [launch ? " It was coalesced, and woken as " : " It was coalesced into ", pushLink(heir.apnsID, "this push"),
    launch ? ` at ${day(launch.at)} (` : " (", heir.reason ? `${end}: ${heir.reason}` : end, ")",
    waits ? `, which waited ${waits}.` : "."];
}

const pushLink = (id, text) => link(address("push", id), text, { title: id });

function facts({ priority, payloadBytes, attempts, worker, held, waited, expiresAt, coalesced }) {
  const waits = waitText(waited);
  return [priority ? ` Priority ${priority}.` : "", payloadBytes ? ` ${count(payloadBytes)} bytes.` : "",
    attempts ? ` ${count(attempts)} ${attempts === 1 ? "attempt" : "attempts"}` : " Not launched",
    worker ? `, last to the worker ${worker}.` : ".",
    held?.length > 0 ? ` Held by ${held.join(", ")}.` : "",
    waits ? ` Waited ${waits}.` : "", expiresAt ? ` Expires ${day(expiresAt)}.` : "",
    coalesced ? ` Replaced ${count(coalesced)} older ${coalesced === 1 ? "push" : "pushes"}.` : ""].join("");
}

export function pushPanel(push, heir, close) {
  return el("div", { class: "panel" },
    el("div", { class: "inspector-head" },
      el("div", {}, el("h2", { id: "inspector-title" }, "Push ", pushState(push)),
        el("p", { class: "token" }, push.apnsID)),
      el("div", { class: "row" }, close)),
    el("p", { class: "why" }, push.receivedAt ? `Received ${day(push.receivedAt)}.`
      : "It was received before the history begins.",
    push.device ? [" It is for ", link(address("device", push.device), "this device", { title: push.device }),
      push.topic ? ` of ${push.topic}.` : "."] : null,
    push.into ? heirText(push, heir) : null,
    facts(push)),
    eventList(push.events));
}
