// Results, holds, refusals: lists of counts with bars.

import { byID, el, empty, track } from "./dom.js";
import { count, percent } from "./format.js";

const resultNames = {
  newData: ["New data", "good"], noData: ["No data", "pushes"], failed: ["Failed", "warn"],
  expired: ["Expired: no answer in time", "bad"], lost: ["Lost: the worker went away", "idle"],
};
const holdNames = {
  worker: "No free worker slot", battery: "Battery is low", thermal: "Too hot", network: "No network",
  forceQuit: "Force quit by its user", backgroundRefresh: "Background refresh is off",
  priority: "Priority 1 rides along",
};
const discardNames = {
  expired: "Discarded: expired", exhausted: "Discarded: every attempt used", forceQuit: "Discarded: force quit",
  unregistered: "Discarded: device removed",
};

// Rows of `[name, count, ink]`, those with the most first, or a sentence when there are none.
function list(host, rows, ...nothing) {
  const shown = rows.filter(([, number]) => number > 0).sort((a, b) => b[1] - a[1]).slice(0, 8);
  if (shown.length === 0) return host.replaceChildren(empty(...nothing));
  const total = rows.reduce((sum, [, number]) => sum + number, 0);
  host.replaceChildren(el("ul", { class: "bars" }, shown.map(([name, number, ink]) => el("li", {}, el("span", {}, name),
    el("span", { class: "count" }, count(number), el("span", { class: "share" }, percent(number / total))),
    track(number / total, ink)))));
}

export function updateBars({ pushes, wakes, devices }) {
  list(byID("results"),
    Object.entries(wakes.results).map(([name, number]) => [...(resultNames[name] ?? [name, "idle"]), number])
      .map(([name, ink, number]) => [name, number, ink]),
    "No wake has ended yet.");
  list(byID("holds"),
    Object.entries(devices.held).map(([name, number]) =>
      [holdNames[name] ?? name, number, name === "worker" ? "bad" : "warn"]),
    "Nothing is held back: whatever waits, waits for its time alone.");
  list(byID("refused"), [
    ...Object.entries(pushes.rejected).map(([name, number]) => [name, number, "bad"]),
    ...Object.entries(pushes.discarded).map(([name, number]) => [discardNames[name] ?? name, number, "warn"]),
  ], "Every push was taken, and none was discarded.");
}
