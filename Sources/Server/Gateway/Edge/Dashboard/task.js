// The name, progress and state of a background task, wherever the page shows one.

import { badge, el, track } from "./dom.js";
import { count, percent, sum } from "./format.js";

export const kinds = {
  appRefresh: "App refresh", processing: "Processing", continued: "Continued", urlSession: "Session",
};

const holds = {
  forceQuit: "force quit", backgroundRefresh: "background refresh is off", active: "device in use",
  network: "no network", power: "no external power", lowPower: "low power mode", thermal: "too hot",
  memory: "memory is short",
  battery: "battery is low", usage: "not used for long", paused: "topic is paused",
  worker: "no free worker",
};

export const taskName = (task) => task.identifier ?? task.session;

export const isRunning = (task) => Boolean(task.wake);

export const holdName = (code) => holds[code] ?? code;

// Returns true if the gateway has ever received a request for a background task.
export const hasTasks = ({ tasks, sessions }) =>
  tasks.submitted + sum(tasks.refused) + sessions.finished + sessions.refused > 0;

// Returns the state of a task: running, or the reason why it waits.
export function taskState(task) {
  if (isRunning(task)) return badge("running", "launches");
  if (task.held) return badge(holdName(task.held), task.held === "worker" ? "bad" : "warn");
  return badge("waiting", "pushes");
}

// Returns the latest texts that a continued task reported for people.
export function taskTexts(task) {
  const { title, subtitle } = task.progress ?? {};
  return [title ?? task.title, subtitle ?? task.subtitle].filter((text) => text);
}

// Returns the progress of a continued task as a bar and in numbers; null if none was reported. Without a total, the bar
// has no value.
export function progressBar({ progress }, label) {
  if (!progress) return null;
  const { completed, total } = progress;
  const share = total > 0 ? Math.min(1, completed / total) : 0;
  const done = total > 0 ? `${count(completed)} of ${count(total)}` : `${count(completed)} done`;
  const bar = el("div", { role: "progressbar", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100",
    "aria-valuetext": done }, track(share, "launches"));
  if (total > 0) bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
  return el("div", { class: "progress" }, bar,
    el("span", { class: "muted" }, total > 0 ? `${done}, ${percent(share)}` : done));
}
