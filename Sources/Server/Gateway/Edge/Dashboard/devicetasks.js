// The background tasks of one device: the pending tasks with reasons, the running tasks with progress, and the actions
// for operators.

import { Refusal, request } from "./api.js";
import { el, empty, setText } from "./dom.js";
import { clock, count, day, local, moment } from "./format.js";
import { isRunning, kinds, progressBar, taskName, taskState, taskTexts } from "./task.js";

const actions = {
  launch: {
    text: "Simulate launch", label: (name) => `Simulate launch of ${name}`,
    method: "POST", route: "/simulate-launch", done: () => "is on its way to a worker.",
  },
  expire: {
    text: "Simulate expiration", label: (name) => `Simulate expiration of ${name}`,
    method: "POST", route: "/simulate-expiration", done: () => "was ended as expired.",
  },
  cancel: {
    text: "Cancel", label: (name) => `Cancel ${name}`, method: "DELETE", route: "", done: (task) => {
      if (!isRunning(task)) return "was cancelled.";
      return task.kind === "continued" ? "was cancelled, and its worker is notified."
        : "was cancelled: it runs to its end, and is not launched again.";
    },
  },
};

// Returns the possible actions. Sessions have none, because they are not submitted.
function isOffered(action, task) {
  if (task.kind === "urlSession") return false;
  return action === "cancel" || (action === "expire") === isRunning(task);
}

// Returns the settings of the request.
function options(task) {
  const parts = [];
  if (task.count === 1) parts.push("1 finished transfer");
  if (task.count > 1) parts.push(`${count(task.count)} finished transfers`);
  if (task.requiresNetworkConnectivity) parts.push("requires network");
  if (task.requiresExternalPower) parts.push("requires external power");
  if (task.resources?.length > 0) parts.push(`needs ${task.resources.join(", ")}`);
  if (task.attempts > 0) parts.push(`attempt ${count(task.attempts)}`);
  if (task.worker) parts.push(`worker ${task.worker}`);
  return parts;
}

// Formats hours of the day as periods: [8, 9, 20] is 08–10 and 20–21.
export function hourText(hours) {
  const two = (hour) => String(hour).padStart(2, "0");
  const stretches = [];
  for (const hour of hours) {
    const last = stretches.at(-1);
    if (last && last[1] === hour) last[1] = hour + 1;
    else stretches.push([hour, hour + 1]);
  }
  return stretches.map(([from, until]) => `${two(from)}–${two(until)}`).join(", ");
}

// One task. Its element stays in place while the task is pending, launched and running, so that the user does not lose
// it.
class TaskItem {
  constructor(act) {
    this.heading = el("h3");
    this.state = el("div", { class: "row" });
    this.texts = el("p", { class: "texts" });
    this.why = el("p");
    this.facts = el("p", { class: "hint" });
    this.left = el("span");
    this.progress = el("div");
    this.buttons = new Map(Object.entries(actions).map(([action, { text }]) => [action,
      el("button", { class: action === "launch" ? "button" : "button danger", type: "button",
        onclick: () => act(action, this.task) }, text)]));
    this.node = el("li", {},
      el("div", { class: "task" }, el("div", { class: "row" }, this.heading, this.state), this.texts, this.why,
        this.progress, this.facts),
      el("div", { class: "row" }, ...this.buttons.values()));
  }

  update(task) {
    this.task = task;
    this.tick(Date.now());
    const mark = JSON.stringify(task);
    if (mark === this.mark) return;
    this.mark = mark;
    const name = taskName(task);
    setText(this.heading, name);
    this.state.replaceChildren(el("span", { class: "muted" }, kinds[task.kind] ?? task.kind), taskState(task));
    this.texts.hidden = taskTexts(task).length === 0;
    setText(this.texts, taskTexts(task).join(": "));
    setText(this.why, local(task.why));
    this.progress.replaceChildren(progressBar(task, `Progress of ${name}`) ?? "");
    this.facts.replaceChildren(...this.times(task).flatMap((part, index) => (index > 0 ? [" · ", part] : [part])));
    const focused = document.activeElement;
    for (const [action, button] of this.buttons) {
      button.hidden = !isOffered(action, task);
      button.setAttribute("aria-label", actions[action].label(name));
    }
    if (this.node.contains(focused) && focused.hidden) {
      [...this.buttons.values()].find((button) => !button.hidden)?.focus();
    }
  }

  times(task) {
    const submitted = `${task.kind === "urlSession" ? "reported" : "submitted"} ${moment(task.submittedAt)}`;
    if (isRunning(task)) return [`running since ${moment(task.launchedAt)}`, this.left, submitted, ...options(task)];
    const parts = [`waiting since ${moment(task.submittedAt)}`];
    if (task.eligibleAt) parts.push(`may launch ${moment(task.eligibleAt)}`, this.left);
    return [...parts, ...options(task)];
  }

  tick(now) {
    const { deadline, eligibleAt } = this.task;
    if (isRunning(this.task)) setText(this.left, `deadline ${moment(deadline)}, in ${clock(deadline - now)}`);
    else if (eligibleAt) setText(this.left, `in ${clock(eligibleAt - now)}`);
  }
}

export class DeviceTasks {
  // - path: the path of the device.
  // - refresh: reloads the device.
  constructor(path, refresh) {
    this.path = path;
    this.refresh = refresh;
    this.items = new Map();
    this.isAsking = false;
    this.heading = el("h2", { id: "device-tasks-title", tabindex: "-1" }, "Its background tasks");
    this.outcome = el("p", { class: "hint", role: "status" });
    this.list = el("ul", { class: "tasks" });
    this.nothing = empty("No background task of this device waits or runs.");
    this.usage = el("p", { class: "hint" });
    this.node = el("section", { class: "panel", "aria-labelledby": "device-tasks-title" },
      this.heading, this.outcome, this.list, this.nothing, this.usage);
  }

  async act(action, task) {
    const { method, route, done } = actions[action];
    const name = taskName(task);
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      await request(method, `${this.path}/tasks/${encodeURIComponent(name)}${route}`);
      setText(this.outcome, `${name} ${done(task)}`);
    } catch (error) {
      setText(this.outcome, error instanceof Refusal ? error.message : "The gateway does not answer.");
    }
    this.isAsking = false;
    await this.refresh();
  }

  show({ tasks, usage }) {
    const items = new Map();
    for (const task of [...tasks.running, ...tasks.waiting]) {
      let key = `${task.kind} ${taskName(task)} ${task.submittedAt}`;
      while (items.has(key)) key += "+";
      const item = this.items.get(key) ?? new TaskItem((action, of) => this.act(action, of));
      item.update(task);
      items.set(key, item);
    }
    const focused = document.activeElement;
    const hadFocus = this.list.contains(focused);
    this.items = items;
    this.arrange([...items.values()].map((item) => item.node));
    // An element that is moved or removed would lose the focus.
    if (hadFocus && document.activeElement !== focused) (this.list.contains(focused) ? focused : this.heading).focus();
    this.nothing.hidden = items.size > 0;
    setText(this.usage, this.usageText(usage));
  }

  // Sorts the shown tasks, and moves as few elements as possible.
  arrange(nodes) {
    for (const node of [...this.list.children]) if (!nodes.includes(node)) node.remove();
    nodes.forEach((node, index) => {
      if (this.list.children[index] !== node) this.list.insertBefore(node, this.list.children[index] ?? null);
    });
  }

  usageText({ lastUse, habitualHours }) {
    const last = lastUse ? `The device was last used ${day(lastUse)}` : "No use of the device was reported";
    return habitualHours.length === 0 ? `${last}; no hour of its use is habitual.`
      : `${last}; it is habitually used at ${hourText(habitualHours)} UTC.`;
  }

  tick(now) {
    for (const item of this.items.values()) item.tick(now);
  }
}
