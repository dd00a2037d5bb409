// The list of pushes, newest first.

import { badge, el, link } from "./dom.js";
import { moment } from "./format.js";
import { choice, ListView, topicInput } from "./listview.js";
import { address } from "./route.js";
import { cell, deviceLink } from "./table.js";
import { outcomeNames } from "./words.js";

const spans = { "5m": 300_000, "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000 };

// The address has a duration, so that a link keeps its meaning; the route needs a time.
const question = ({ since, ...others }) =>
  ({ ...others, since: since in spans ? String(Date.now() - spans[since]) : since });

function row(push) {
  const [text, ink] = outcomeNames[push.outcome] ?? [push.outcome, "idle"];
  return el("tr", { "data-key": push.apnsID },
    el("th", { scope: "row", class: "start" }, link(address("push", push.apnsID), push.apnsID, { class: "link" })),
    el("td", { class: "start" }, push.device ? deviceLink(push.device) : "–"),
    cell(push.topic ?? "–", { class: "start" }),
    cell(push.receivedAt ? moment(push.receivedAt) : "earlier"), el("td", { class: "start" }, badge(text, ink),
      push.lost ? badge(push.lost > 1 ? `lost ${push.lost} times` : "lost once", "warn") : null),
    cell(push.outcomeAt ? moment(push.outcomeAt) : "–"));
}

export const makePushList = () => new ListView({
  name: "pushes", title: "Pushes", row, question,
  none: "The history has no push like that.",
  filters: {
    topic: { label: "Topic", input: topicInput() },
    outcome: { label: "Outcome", input: choice([["", "every"], ["expired,lost", "expired or lost"],
      ["lost", "a wake was lost"], ...Object.entries(outcomeNames).map(([outcome, [text]]) => [outcome, text])]) },
    since: { label: "Received in the last", input: choice([["", "any time"], ["5m", "5 minutes"], ["1h", "hour"],
      ["24h", "24 hours"], ["7d", "7 days"]]) },
  },
  columns: ["Push", "Device", "Topic", "Received", "Outcome", "Since"],
  starts: ["Device", "Topic", "Outcome"], reason: "Outcome",
});
