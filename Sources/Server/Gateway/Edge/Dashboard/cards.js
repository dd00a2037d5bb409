// A card for each running continued task, with live progress until the end, for the person who started it.

import { explain, request } from "./api.js";
import { badge, byID, el, link, setText, track } from "./dom.js";
import { clock, count, percent, rate } from "./format.js";
import { address } from "./route.js";
import { taskName, taskTexts } from "./task.js";

// The maximum number of cards. Further tasks are only counted.
const cardsMax = 24;
// The maximum number of tasks that the gateway lists.
const listedMax = 1000;
// A task's rate is computed over this many milliseconds. A task without progress in that time has stalled.
const rateSpan = 15_000;
// A card shows the result of a finished task for this long, in milliseconds, unless its place is needed.
const farewell = 12_000;

const ends = {
  success: ["finished", "good"], failure: ["failed", "bad"], expired: ["expired", "bad"],
  cancelled: ["cancelled", "idle"], lost: ["lost: it waits again", "warn"],
  interrupted: ["interrupted: too hot, short of memory, or force-quit", "warn"],
};

const keyOf = (task) => `${task.device} ${taskName(task)} ${task.wake}`;

class Card {
  constructor(task) {
    this.task = task;
    this.device = task.device;
    this.points = [];
    this.endedAt = null;
    this.title = el("h3", { tabindex: "-1" });
    this.subtitle = el("p", { class: "subtitle" });
    this.bar = el("div", { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" });
    this.done = el("span");
    this.speed = el("span");
    this.left = el("span");
    this.state = el("span");
    this.outcome = el("p", { class: "hint", role: "status" });
    this.cancel = el("button", { class: "button danger", type: "button", onclick: () => this.end() }, "Cancel");
    this.node = el("li", { class: "card" },
      el("div", { class: "card-head" }, el("div", {}, this.title, this.subtitle), this.state), this.bar,
      el("div", { class: "card-facts" }, this.done, this.speed, this.left),
      el("div", { class: "card-foot" },
        el("span", {}, link(address("device", task.device), `${task.device.slice(0, 10)}…`,
          { class: "link", title: task.device, "aria-label": `Device ${task.device}` }), ` ${task.topic}`),
        this.cancel), this.outcome);
  }

  update(task, now) {
    this.task = task;
    const { completed = 0, total = 0 } = task.progress ?? {};
    const [title, subtitle] = [task.progress?.title ?? task.title, task.progress?.subtitle ?? task.subtitle];
    setText(this.title, title || taskName(task));
    setText(this.subtitle, subtitle || taskTexts(task)[1] || (title ? taskName(task) : ""));
    this.points.push({ at: now, completed });
    while (this.points.length > 2 && now - this.points[1].at > rateSpan) this.points.shift();
    const first = this.points[0];
    const speed = now > first.at ? (completed - first.completed) / (now - first.at) * 1000 : 0;
    const isStalled = now - first.at >= rateSpan && speed <= 0 && !(total > 0 && completed >= total);
    this.draw(completed, total, isStalled);
    setText(this.speed, speed > 0 ? `${rate(speed)}/s` : "");
    const deadline = `${clock(task.deadline - now)} to its deadline`;
    setText(this.left, speed > 0 && total > completed
      ? `${clock((total - completed) / speed * 1000)} left` : isStalled || !task.progress ? deadline : "");
  }

  // Without a known total the bar has no value.
  draw(completed, total, isStalled) {
    const share = total > 0 ? Math.min(1, completed / total) : 0;
    this.node.classList.toggle("stalled", isStalled);
    const shown = isStalled ? "stalled" : "running";
    if (this.state.textContent !== shown) this.state.replaceChildren(badge(shown, isStalled ? "warn" : "launches"));
    const done = total > 0 ? `${count(completed)} of ${count(total)}` : `${count(completed)} done`;
    const text = this.task.progress ? done : "No progress reported yet";
    this.bar.setAttribute("aria-label", `Progress of ${this.title.textContent}`);
    if (total > 0) this.bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    else this.bar.removeAttribute("aria-valuenow");
    this.bar.setAttribute("aria-valuetext", text);
    this.bar.replaceChildren(track(share, isStalled ? "warn" : "launches"));
    setText(this.done, total > 0 ? `${text}, ${percent(share)}` : text);
    this.cancel.setAttribute("aria-label", `Cancel ${this.title.textContent}`);
  }

  // The button stays enabled during the request, because a disabled button would lose the focus.
  async end() {
    if (this.isEnding) return;
    this.isEnding = true;
    try {
      await request("DELETE", `/v1/devices/${this.device}/tasks/${encodeURIComponent(taskName(this.task))}`);
      setText(this.outcome, "Cancelled; its worker is notified.");
    } catch (error) {
      setText(this.outcome, explain(error, "cancel tasks"));
      this.isEnding = false;
    }
  }

  // Shows the outcome of a task that no longer runs, from the device's history.
  async gone(now) {
    this.endedAt = now;
    let how = null;
    try {
      const { recent } = await request("GET", `/v1/devices/${this.device}`);
      how = recent.find(({ event, task }) => event === "result" && task === taskName(this.task))?.detail ?? null;
    } catch {
      // The outcome is unknown.
    }
    const [text, ink] = ends[how] ?? [how ?? "ended", "idle"];
    this.node.classList.remove("stalled");
    this.state.replaceChildren(badge(text, ink));
    setText(this.speed, "");
    setText(this.left, "");
    // A hidden element would lose the focus.
    if (document.activeElement === this.cancel) this.title.focus();
    this.cancel.hidden = true;
    setText(this.outcome, `${this.title.textContent}: ${text}.`);
  }
}

const cards = new Map();
let isAsking = false;

// - all: the number of running continued tasks according to the live sample.
function show(tasks, all, now) {
  const running = new Map(tasks.map((task) => [keyOf(task), task]));
  for (const [key, card] of cards) {
    if (!running.has(key) && card.endedAt === null) card.gone(now);
    const isOver = card.endedAt !== null && now - card.endedAt > farewell;
    if (isOver && !card.node.contains(document.activeElement)) {
      card.node.remove();
      cards.delete(key);
    }
  }
  for (const [key, task] of running) {
    if (!cards.has(key) && cards.size < cardsMax) {
      cards.set(key, new Card(task));
      byID("cards").append(cards.get(key).node);
    }
    cards.get(key)?.update(task, now);
  }
  const unlisted = running.size < listedMax ? 0 : Math.max(0, all - running.size);
  const rest = [...running.keys()].filter((key) => !cards.has(key)).length + unlisted;
  byID("cards-more").hidden = rest === 0;
  setText(byID("cards-more"), `and ${count(rest)} more, in the table of background tasks below`);
  byID("running").hidden = cards.size === 0;
}

// Updates the cards for each sample of the stream. The sample has the number of running continued tasks.
export async function updateCards(event) {
  const all = event.tasks?.inFlight?.continued ?? 0;
  const isAny = all > 0;
  if (isAsking || (!isAny && cards.size === 0)) return;
  isAsking = true;
  try {
    const tasks = isAny ? (await request("GET", "/v1/tasks?kind=continued&state=running")).tasks : [];
    show(tasks, all, Date.now());
  } catch {
    // If the gateway is unreachable, the page says so and keeps its contents.
  }
  isAsking = false;
}
