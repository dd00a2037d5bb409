// Lists of counts with bars: results, holds, refusals.

import { byID, el, empty, fill, link, track } from "./dom.js";
import { count, percent, sum } from "./format.js";
import { address } from "./route.js";
import { holdInk, holdName, resultNames } from "./words.js";

const discardNames = {
  expired: "Discarded: expired", exhausted: "Discarded: every attempt used", forceQuit: "Discarded: force quit",
  unregistered: "Discarded: device removed", cancelled: "Discarded: dropped by an operator",
};

// Shows rows of `[name, count, ink, address]` in descending order of the counts, or a sentence if there are none.
function list(host, rows, ...nothing) {
  const shown = rows.filter(([, number]) => number > 0).sort((a, b) => b[1] - a[1]).slice(0, 8);
  if (shown.length === 0) return fill(host, empty(...nothing));
  const total = rows.reduce((sum, [, number]) => sum + number, 0);
  fill(host, el("ul", { class: "bars" }, shown.map(([name, number, ink, to]) => el("li", { "data-key": name },
    el("span", {}, to ? link(to, name) : name),
    el("span", { class: "count" }, count(number), el("span", { class: "share" }, percent(number / total))),
    track(number / total, ink)))));
}

// Results that complete a push link to the list of these pushes. Other results, after which the push waits again, link
// to the events.
const resultAddress = (name) => (name === "newData" || name === "noData"
  ? address("pushes", "", { outcome: "completed" }) : address("events", "", { outcome: name }));

export function updateBars({ pushes, wakes, devices }) {
  list(byID("results"), Object.entries(wakes.results).map(([name, number]) => {
    const [title, ink] = resultNames[name] ?? [name, "idle"];
    return [title, number, ink, resultAddress(name)];
  }), "No wake has ended yet.");
  list(byID("holds"), Object.entries(devices.held).map(([code, number]) =>
    [holdName(code), number, holdInk(code), address("devices", "", { hold: code })]),
  "No device is held back: pending pushes wait for their time alone.");
  const held = sum(devices.held);
  fill(byID("holds-all"), held > 0 ? link(address("devices", "", { state: "held" }),
    `${count(held)} ${held === 1 ? "device" : "devices"}`) : null);
  list(byID("refused"), [
    ...Object.entries(pushes.rejected).map(([name, number]) =>
      [name, number, "bad", address("events", "", { outcome: name })]),
    ...Object.entries(pushes.discarded).map(([name, number]) =>
      [discardNames[name] ?? name, number, "warn", address("pushes", "", { outcome: name })]),
  ], "Every push was taken, and none was discarded.");
}
