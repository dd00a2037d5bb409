// The durations of wakes by worker and by topic, and the counts of topics in the last hour or day.

import { byID, el, link, setText } from "./dom.js";
import { count, duration, moment, sum } from "./format.js";
import { address } from "./route.js";
import { cell, more, table } from "./table.js";

const times = ({ p50Ms, p95Ms, maxMs }) => [p50Ms, p95Ms, maxMs].map((time) => cell(duration(time)));

// A gateway of an earlier version has no durations.
export function updateDurations({ stats: { durations } }) {
  byID("durations").hidden = !durations || durations.topics.length === 0;
  if (byID("durations").hidden) return;
  table(byID("durations-workers"), "Table of the slowest workers",
    ["Worker", "Topic", "Kind", "Wakes", "Median", "95 %", "Longest"],
    durations.workers.map((row) => el("tr", { "data-key": JSON.stringify([row.worker, row.topic, row.kind]) },
      el("th", { scope: "row", class: "start" }, row.worker ? link(
        address("workers", "", { topic: row.topic, name: row.worker }), row.worker)
        : "without a name"),
      cell(row.topic, { class: "start" }), cell(row.kind, { class: "start" }), cell(count(row.count)),
      ...times(row))), ["Topic", "Kind"]);
  table(byID("durations-topics"), "Table of the slowest topics",
    ["Topic", "Kind", "Wakes", "Median", "95 %", "Longest"],
    durations.topics.map((row) => el("tr", { "data-key": `${row.topic} ${row.kind}` },
      el("th", { scope: "row", class: "start" }, row.topic), cell(row.kind, { class: "start" }),
      cell(count(row.count)), ...times(row))), ["Kind"]);
  setText(byID("durations-since"), `Wakes that workers answered or let expire since ${
    moment(Date.parse(durations.since))}: the 20 slowest of each kind.`);
}

const period = () => byID("period").querySelector("input:checked").value;

const since = { hour: "1h", day: "24h" };

// Returns a number that links to the counted pushes.
const pushes = (number, topic, outcome, span) => el("td", {}, number > 0
  ? link(address("pushes", "", { topic, outcome, since: since[span] }), count(number),
    { title: `These pushes${topic ? ` of ${topic}` : ""}` }) : "0");

function row(name, topic, counts, span) {
  return el("tr", { "data-key": name }, el("th", { scope: "row", class: "start" }, name),
    pushes(counts.accepted, topic, "", span), pushes(counts.completed, topic, "completed", span),
    pushes(counts.coalesced, topic, "coalesced", span),
    pushes(counts.discarded, topic, "expired,exhausted,forceQuit,unregistered,cancelled", span),
    cell(count(counts.expired)), pushes(counts.lost, topic, "lost", span));
}

export function updatePeriods(event) {
  const { recent } = event.stats;
  if (!recent) return;
  const span = period();
  const all = { ...recent[span], discarded: sum(recent[span].discarded), ...recent[span].results };
  table(byID("periods"), "Table of the pushes of topics in a period",
    ["Topic", "Accepted", "Completed", "Coalesced", "Discarded", "Wakes expired", "Wakes lost"],
    [row("All topics", "", all, span),
      ...event.topics.listed.map((topic) => row(topic.topic, topic.topic, topic.recent[span], span))]);
  more(byID("periods"), event.topics.count - event.topics.listed.length, "topics with fewer pushes");
  setText(byID("periods-since"), `Since ${moment(Date.parse(recent[span].since))}. ${
    "Pushes count when they end, and the lists go by their arrival. Counting begins anew when the gateway starts; the list of pushes goes back farther."}`);
}

// - redraw: redraws the page.
export function startPeriods(redraw) {
  byID("period").addEventListener("change", redraw);
}
