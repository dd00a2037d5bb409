// The background tasks of all devices: the pending and running ones that match the filters, and the counters.

import { Refusal, request } from "./api.js";
import { badge, byID, el, empty, fact, fill } from "./dom.js";
import { count, local, moment, sum } from "./format.js";
import { cell, deviceLink, more, table } from "./table.js";
import { hasTasks, holdName, kinds, progressBar, taskName, taskState, taskTexts } from "./task.js";

// The maximum number of rows. Further tasks are only counted.
const rowsMax = 100;
// The maximum number of tasks that the gateway lists.
const listedMax = 1000;
// The minimum interval between requests for the list, and the maximum share of the gateway's time that they use.
const pauseMilliseconds = 2500;
const timeShare = 0.05;

// True if the list is visible or nearly so. Otherwise it is loaded only once.
let isNear = false;
let wasShown = false;
let askedAgainAt = 0;
let isAsking = false;
// The number of the latest filters. Answers for earlier filters are ignored.
let turn = 0;
let mark = "";

const filters = ["kind", "state", "topic"].map((name) => [name, byID(`task-${name}`)]);

function question() {
  const parts = filters.map(([name, input]) => [name, input.value.trim()]).filter(([, value]) => value);
  return new URLSearchParams(parts).toString();
}

async function ask() {
  if (isAsking || performance.now() < askedAgainAt) return;
  const [mine, text] = [turn, question()];
  const began = performance.now();
  isAsking = true;
  try {
    const { tasks } = await request("GET", `/v1/tasks${text ? `?${text}` : ""}`);
    if (mine === turn) show(tasks, text !== "");
  } catch (error) {
    // If the gateway is unreachable, the page says so and keeps its contents.
    if (error instanceof Refusal && mine === turn) showNothing(error.message);
  }
  isAsking = false;
  const now = performance.now();
  askedAgainAt = mine === turn ? now + Math.max(pauseMilliseconds, (now - began) / timeShare) : 0;
  if (mine !== turn) ask();
}

function showNothing(...text) {
  mark = "";
  byID("tasks").replaceChildren(empty(...text));
}

// An unchanged list is not redrawn, because the user may be reading it or about to click.
function show(tasks, isFiltered) {
  wasShown = true;
  const now = JSON.stringify([tasks, isFiltered]);
  if (now === mark) return;
  if (tasks.length === 0) {
    return showNothing(isFiltered ? "No task of this kind, state and topic waits or runs." : "No task waits or runs.");
  }
  const host = byID("tasks");
  table(host, "Table of background tasks",
    ["Task", "Kind", "Device", "Topic", "State", "Since", "May launch", "Deadline", "Why"],
    tasks.slice(0, rowsMax).map(row), ["Kind", "Device", "Topic", "State", "Why"], "Why");
  more(host, tasks.length - rowsMax, tasks.length < listedMax ? "tasks" : "tasks or more");
  mark = now;
}

function row(task) {
  const name = taskName(task);
  const texts = taskTexts(task).join(": ");
  return el("tr", { "data-key": `${task.device} ${name} ${task.submittedAt}` },
    el("th", { scope: "row", class: "start mono" }, name),
    cell(kinds[task.kind] ?? task.kind, { class: "start" }),
    el("td", { class: "start" }, deviceLink(task.device)),
    cell(task.topic, { class: "start" }),
    el("td", { class: "start" }, taskState(task), progressBar(task, `Progress of ${name}`)),
    cell(moment(task.launchedAt ?? task.submittedAt)),
    cell(task.eligibleAt ? moment(task.eligibleAt) : "–"), cell(task.deadline ? moment(task.deadline) : "–"),
    el("td", { class: "start why-cell" }, texts ? el("p", {}, texts) : null, local(task.why)));
}

// The counters above 0, as text.
const named = (counters, name = (key) => key) => Object.entries(counters).filter(([, number]) => number > 0)
  .map(([key, number]) => `${name(key)} ${count(number)}`).join(", ") || "none";

const accounted = (all, found, what) =>
  fact("Accounted for", all === found ? `every ${what}` : badge(`${count(all - found)} amiss`, "bad"));

function requestFacts(tasks, held) {
  const { lost, ...ended } = tasks.results;
  const found = tasks.replaced + tasks.cancelled + sum(tasks.discarded) + sum(ended) + tasks.waiting + tasks.inFlight;
  return el("div", {}, el("h3", {}, "Requests"), el("dl", { class: "facts" },
    fact("Submitted", count(tasks.submitted)), fact("Waiting", count(tasks.waiting)),
    fact("Running", count(tasks.inFlight)), fact("Results", named(tasks.results)),
    fact("Replaced", count(tasks.replaced)), fact("Cancelled while waiting", count(tasks.cancelled)),
    fact("Discarded", named(tasks.discarded)), fact("Refused", named(tasks.refused)),
    fact("Held back now", named(held, holdName)), accounted(tasks.submitted, found, "request")));
}

function sessionFacts(sessions) {
  const found = sessions.completed + sum(sessions.discarded) + sessions.waiting + sessions.inFlight;
  return el("div", {}, el("h3", {}, "Transfers of background sessions"), el("dl", { class: "facts" },
    fact("Finished", count(sessions.finished)), fact("Waiting", count(sessions.waiting)),
    fact("In flight", count(sessions.inFlight)), fact("Completed", count(sessions.completed)),
    fact("Discarded", named(sessions.discarded)), fact("Refused", count(sessions.refused)),
    fact("Results of wakes", named(sessions.results)), accounted(sessions.finished, found, "transfer")));
}

export function updateTasks(event) {
  const { tasks, sessions } = event.stats;
  const hasAny = hasTasks(event.stats);
  byID("task-filters").hidden = !hasAny;
  if (!hasAny) {
    return showNothing("No background task yet. A device asks for one with ",
      el("code", {}, "wakegate task submit"), ", or its worker does.");
  }
  const hasRequests = tasks.submitted + sum(tasks.refused) > 0;
  const hasSessions = sessions.finished + sessions.refused > 0;
  fill(byID("task-counts"), ...(hasRequests ? [requestFacts(tasks, event.tasks?.held ?? {})] : []),
    ...(hasSessions ? [sessionFacts(sessions)] : []));
  if (isNear || !wasShown) ask();
}

export function startTasks() {
  new IntersectionObserver((entries) => {
    isNear = entries.at(-1).isIntersecting;
    if (isNear && !byID("task-filters").hidden) ask();
  }, { rootMargin: "300px" }).observe(byID("tasks").parentElement);
  byID("task-filters").addEventListener("submit", (event) => event.preventDefault());
  byID("task-filters").addEventListener("input", () => {
    turn += 1;
    askedAgainAt = 0;
    ask();
  });
}
