// The current numbers and their charts.

import { Chart, Sparkline } from "./chart.js";
import { byID, el, setText } from "./dom.js";
import { count, percent, rate, sum } from "./format.js";
import { hasTasks, kinds } from "./task.js";

class Tile {
  constructor(title, ink, unit = "") {
    this.value = el("span", {}, "–");
    this.note = el("p", { class: "note" });
    this.sparkline = new Sparkline(ink);
    this.node = el("article", { class: "tile" }, el("h2", {}, title),
      el("p", { class: "value" }, this.value, unit ? el("span", { class: "unit" }, unit) : null), this.note,
      this.sparkline.picture);
  }

  update(value, note, points) {
    setText(this.value, value);
    setText(this.note, note);
    this.sparkline.update(points);
  }
}

const tiles = {
  pushes: new Tile("Pushes", "pushes", "/s"),
  launches: new Tile("Launches", "launches", "/s"),
  ratio: new Tile("Pushes per launch", "merged"),
  waiting: new Tile("Waiting", "idle"),
  inFlight: new Tile("In flight", "launches"),
  refused: new Tile("Refused", "bad", "/s"),
};

// The tiles of background tasks, which are shown after the first task.
const taskTiles = { waiting: new Tile("Tasks waiting", "idle"), running: new Tile("Tasks running", "launches") };

// Counters grow in bursts, so a tile shows the rate over five samples.
const smooth = 5;

const charts = [
  new Chart("Pushes and launches a second", [
    { name: "pushes", ink: "pushes", points: (series) => series.rate("accepted") },
    { name: "launches", ink: "launches", points: (series) => series.rate("launched") },
  ], { format: rate }),
  new Chart("Coalescing: pushes that needed no launch of their own", [
    { name: "coalesced", ink: "merged", points: (series) => series.share("coalesced", "completed", 10) },
  ], { format: percent, most: 1 }),
  new Chart("Results a second", [
    { name: "new data", ink: "good", points: (series) => series.rate("newData") },
    { name: "no data", ink: "pushes", points: (series) => series.rate("noData") },
    { name: "failed", ink: "warn", points: (series) => series.rate("failed") },
    { name: "expired", ink: "bad", points: (series) => series.rate("expired") },
    { name: "lost", ink: "idle", points: (series) => series.rate("lost") },
  ], { format: rate, isStacked: true }),
  new Chart("Waiting and in flight", [
    { name: "waiting", ink: "warn", points: (series) => series.gauge("pending") },
    { name: "in flight", ink: "launches", points: (series) => series.gauge("inFlight") },
    { name: "slots", ink: "idle", points: (series) => series.gauge("slots") },
  ], { format: count }),
];

const taskInks = { appRefresh: "launches", processing: "merged", continued: "pushes", urlSession: "warn" };

// - sessions: the counts of sessions.
const byKind = (points, sessions) => Object.entries(taskInks).map(([kind, ink]) =>
  ({ ink, name: kind === "urlSession" ? sessions : kinds[kind].toLowerCase(),
    points: (series) => points(series, kind) }));

const taskCharts = [
  new Chart("Background tasks launched a second",
    byKind((series, kind) => series.rate(`tasks.launched.${kind}`), "session"),
    { format: rate, isStacked: true }),
  new Chart("Background tasks waiting",
    byKind((series, kind) => series.gauge(`tasks.waiting.${kind}`), "transfers"),
    { format: count, isStacked: true }),
];

export function buildOverview() {
  byID("tiles").append(...Object.values(tiles).map((tile) => tile.node));
  byID("charts").append(...charts.map((chart) => chart.node));
}

export function updateCharts(series) {
  for (const chart of charts) chart.update(series);
  for (const chart of taskCharts.filter((chart) => chart.node.isConnected)) chart.update(series);
}

const latest = (points) => points.at(-1)?.value ?? null;

const requestFields = (group) =>
  ["appRefresh", "processing", "continued"].map((kind) => `tasks.${group}.${kind}`);

function updateTaskTiles({ tasks }, series) {
  if (!taskTiles.waiting.node.isConnected) {
    byID("tiles").append(...Object.values(taskTiles).map((tile) => tile.node));
    byID("charts").append(...taskCharts.map((chart) => chart.node));
  }
  taskTiles.waiting.update(
    count(tasks.waiting), `${count(tasks.submitted)} submitted`, series.gauge(...requestFields("waiting")));
  taskTiles.running.update(
    count(tasks.inFlight), `${count(tasks.results.success)} succeeded`, series.gauge(...requestFields("inFlight")));
}

export function updateTiles(stats, series) {
  const { pushes, wakes, workers } = stats;
  const refused = sum(pushes.rejected);
  const rates = (field) => series.rate(field, smooth);
  const [accepted, launched, rejected] = [rates("accepted"), rates("launched"), rates("rejected")];
  tiles.pushes.update(rate(latest(accepted)), `${count(pushes.accepted)} in all`, accepted);
  tiles.launches.update(rate(latest(launched)), `${count(wakes.launched)} in all`, launched);
  // The ratio is below one if launches have no ended push: they are in flight, manual, or retries after a failure.
  const ended = `${count(pushes.completed + pushes.coalesced)} ended, ${count(wakes.launched)} launches`;
  tiles.ratio.update(
    rate(stats.pushesPerLaunch), stats.pushesPerLaunch < 1 && wakes.launched > 0 ? ended
      : `${count(pushes.coalesced)} coalesced`, series.share("coalesced", "completed", 10));
  tiles.waiting.update(count(pushes.pending), `${count(sum(stats.devices.held))} held back`, series.gauge("pending"));
  tiles.inFlight.update(count(pushes.inFlight), `of ${count(workers.slots)} slots`, series.gauge("inFlight"));
  tiles.refused.update(rate(latest(rejected)), `${count(refused)} in all`, rejected);
  if (hasTasks(stats)) updateTaskTiles(stats, series);
}
