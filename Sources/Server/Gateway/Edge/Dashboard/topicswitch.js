// Pauses and resumes topics.

import { explain, request } from "./api.js";
import { badge, byID, el, setText } from "./dom.js";

// The answer to a request is shown until the stream confirms it, because an earlier sample would contradict it.
const answered = new Map();

async function turn(topic, verb) {
  try {
    const answer = await request("POST", `/v1/topics/${encodeURIComponent(topic)}/${verb}`);
    answered.set(topic, { paused: answer.paused, until: performance.now() + 3000 });
    setText(byID("topics-outcome"), answer.paused
      ? `${topic} is paused: new pushes wait.` : `${topic} is resumed.`);
  } catch (error) {
    setText(byID("topics-outcome"), explain(error, `${verb} topics`));
  }
}

// Returns the cell of a topic: its pause, and the button that changes it.
export function switchCell({ topic, paused: told }) {
  // A gateway of an older version cannot pause topics.
  if (typeof told !== "boolean") return el("td", { class: "muted" }, "–");
  const own = answered.get(topic);
  if (own && (own.paused === told || performance.now() > own.until)) answered.delete(topic);
  const isPaused = answered.get(topic)?.paused ?? told;
  const verb = isPaused ? "Resume" : "Pause";
  return el("td", {}, el("span", { class: "row actions" }, isPaused ? badge("paused", "bad") : null,
    el("button", { class: "button small", type: "button", "data-key": `switch ${topic}`,
      "data-verb": verb.toLowerCase(), "aria-label": `${verb} ${topic}`,
      onclick: ({ currentTarget }) => turn(topic, currentTarget.dataset.verb) }, verb)));
}
