// The events of a device or a push as a list.

import { el, link } from "./dom.js";
import { day, moment } from "./format.js";
import { address } from "./route.js";

const results = {
  newData: ["new data", "good"], noData: ["no data", "pushes"], failed: ["failed", "warn"], expired: ["expired", "bad"],
  lost: ["lost", "idle"],
};
const taskResults = { success: "good", failure: "warn", expired: "bad" };

// Returns the color for the outcome of a wake of a push or a task.
export const outcomeInk = (name) => results[name]?.[1] ?? taskResults[name] ?? "idle";

// Returns the name and the color of an event.
export function describe({ event, detail: words, kind, task, session, held, worker }) {
  const detail = held ? `${words}, held by ${held}` : worker ? `${words}, worker ${worker}` : words;
  if (kind) return describeTask(event, detail, kind, task ?? session ?? "a name that is not kept");
  const plain = {
    registered: ["Registered", "idle"], removed: ["Removed", "idle"], push: [`Push, ${detail}`, "pushes"],
    launch: [`Launch, ${detail}`, "launches"], discard: [`Discarded: ${detail}`, "bad"],
    conditions: [detail ? `Conditions: ${detail}` : "Conditions reported", "idle"], extended: [`Given more time, ${detail}`, "idle"],
    subscribed: [`Worker subscribed: ${detail}`, "idle"],
    received: [`Received, ${detail}`, "pushes"], launched: [`Launched, ${detail}`, "launches"],
    absorbed: ["Took over an older push", "merged"], coalesced: ["Coalesced into a newer push", "merged"],
    discarded: [`Discarded: ${detail}`, "bad"],
  };
  if (event === "result") {
    const [name, ink] = results[detail] ?? [detail, "idle"];
    return [`Result: ${name}`, ink];
  }
  return plain[event] ?? [detail ? `${event}: ${detail}` : event, "idle"];
}

// Returns the name and the color of an event of a task or session.
function describeTask(event, detail, kind, name) {
  const plain = {
    submit: [`Submitted, ${detail}`, "idle"], refused: [`Refused: ${detail}`, "bad"], finished: [`Finished, ${detail}`, "idle"],
    launch: [`Launch, ${detail}`, "launches"], discard: [`Discarded: ${detail}`, "bad"],
    extended: [`Given more time, ${detail}`, "idle"],
    result: [`Result: ${detail}`, outcomeInk(detail)],
  };
  const [text, ink] = plain[event] ?? [`${event}: ${detail}`, "idle"];
  return [`${kind} ${name}: ${text}`, ink];
}

export function eventList(events) {
  return el("ol", { class: "events", tabindex: "0", "aria-label": "What happened, the newest first" },
    events.map((event) => {
      const [text, ink] = describe(event);
      const id = event.other ?? event.apnsID;
      return el("li", { class: `ink-${ink}` },
        el("time", { datetime: new Date(event.at).toISOString(), title: day(event.at) }, moment(event.at)),
        el("span", { class: "pin", "aria-hidden": "true" }),
        el("div", {}, text, id ? el("div", {}, link(address("push", id), id, { class: "link" })) : null));
    }));
}
