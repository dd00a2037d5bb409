// Builds the page and updates it with the gateway's data.

import { onTokenNeeded, Refusal, request } from "./api.js";
import { updateBars } from "./bars.js";
import { updateCards } from "./cards.js";
import { makeDeviceList } from "./devicelist.js";
import { byID, el, setText } from "./dom.js";
import { startPeriods, updateDurations, updatePeriods } from "./durations.js";
import { Feed } from "./feed.js";
import { updateFirstSteps } from "./firststeps.js";
import { time } from "./format.js";
import { hideInspector, showInspected, showTopic, showUnknown, startInspector } from "./inspector.js";
import { followLive, seen } from "./live.js";
import { buildOverview, updateCharts, updateTiles } from "./overview.js";
import { makePushList } from "./pushlist.js";
import { startRoutes } from "./route.js";
import { Series } from "./series.js";
import { suggestTopics } from "./table.js";
import { updateTables } from "./tables.js";
import { startTasks, updateTasks } from "./tasktable.js";
import { startTheme } from "./theme.js";
import { WorkerList } from "./workerlist.js";

const spans = [[1, 300], [10, 360], [300, 288]].map(([every, countMax]) => new Series(every, countMax));
let shown = spans[0];
const workers = new WorkerList();
let latest = null;

const titles = {
  device: (token) => `Device ${token.slice(0, 10)}… · WakeGate`,
  push: (id) => `Push ${id.slice(0, 8)}… · WakeGate`, topic: (topic) => `Topic ${topic} · WakeGate`,
  find: () => "Search · WakeGate", devices: () => "Devices · WakeGate", pushes: () => "Pushes · WakeGate",
  workers: () => "Workers · WakeGate", events: () => "Events · WakeGate", unknown: () => "Not found · WakeGate",
};
const words = { ready: "Ready", draining: "Shutting down", failed: "Takes nothing: storing failed" };

function setStatus(state, text) {
  byID("status").dataset.state = state;
  setText(byID("status-text"), text);
  byID("live").classList.toggle("stale", state === "gone");
}

function setNotice(title, text) {
  const notice = byID("notice");
  if (title && notice.textContent !== `${title} ${text}`) notice.replaceChildren(el("strong", {}, title), ` ${text}`);
  notice.hidden = !title;
}

function received(event) {
  latest = event;
  const { state, problem } = event.gateway;
  setStatus(state, words[state] ?? state);
  const loss = event.stats.acceptedLoss;
  if (problem) setNotice("The gateway takes nothing more until it is restarted.", problem);
  else if (loss) setNotice("The gateway was started without what is missing.", `${loss.file}: ${loss.cause}.`);
  else setNotice(null);
  for (const series of spans) series.append(event);
  suggestTopics(event.topics.listed.map(({ topic }) => topic));
  workers.update(event);
  if (!byID("live").hidden) showOverview(event);
}

function showOverview(event) {
  updateFirstSteps(event);
  updateCards(event);
  updateTiles(event.stats, spans[0]);
  updateCharts(shown);
  updateBars(event.stats);
  updateTables(event);
  updatePeriods(event);
  updateDurations(event);
  updateTasks(event);
}

// Past samples are loaded for each new stream, because the gateway has samples that this page missed.
async function fill() {
  const answers = await Promise.all(spans.map((series) => request("GET", `/v1/samples?every=${series.every}`)));
  answers.forEach((answer, index) => spans[index].fill(answer));
  updateCharts(shown);
}

const pause = (milliseconds) => new Promise((resolve) => {
  setTimeout(resolve, milliseconds);
});

async function keepFollowing() {
  const pauses = [500, 1000, 2000, 3000];
  for (let failures = 0; ; failures += 1) {
    let refusal = null;
    await seen();
    try {
      await fill();
      const isEnded = await followLive(received, () => {
        failures = 0;
      });
      if (!isEnded) continue;
    } catch (error) {
      if (error instanceof Refusal) refusal = error;
    }
    const since = latest ? ` What is shown is of ${time(latest.at)}.` : "";
    setStatus("gone", refusal ? "Refused" : "No connection");
    setNotice(refusal ? "The gateway refuses the dashboard." : "The gateway does not answer.",
      `${refusal?.message ?? "It is asked again and again until it does."}${since}`);
    await pause(pauses[Math.min(failures, pauses.length - 1)]);
  }
}

function startTokens() {
  const dialog = byID("token-dialog");
  let waiting = null;
  // Without a token there is nothing to show.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  byID("token-form").addEventListener("submit", () => {
    waiting?.resolve(byID("token").value.trim());
    waiting = null;
    byID("token").value = "";
  });
  onTokenNeeded((reason) => {
    byID("token-reason").textContent = reason || "This gateway asks operators for a token.";
    setStatus("connecting", "Waiting for a token");
    waiting ??= Promise.withResolvers();
    if (!dialog.open) dialog.showModal();
    return waiting.promise;
  });
}

// Shows only the view in the address.
function startViews() {
  const lists = { devices: makeDeviceList(), pushes: makePushList(), workers, events: new Feed() };
  let list = null;
  startRoutes(async ({ view, what, filters }) => {
    const next = lists[view] ?? null;
    if (list !== next) list?.hide();
    list = next;
    hideInspector();
    byID("live").hidden = view !== "overview";
    byID("list").hidden = next === null;
    byID("list").replaceChildren(...(next ? [next.node] : []));
    for (const item of byID("views").querySelectorAll("a")) {
      if (item.dataset.view === view) item.setAttribute("aria-current", "page");
      else item.removeAttribute("aria-current");
    }
    document.title = titles[view]?.(what) ?? "WakeGate";
    if (view === "overview" && latest) showOverview(latest);
    if (next) await next.show(filters);
    else if (view === "unknown") showUnknown(what);
    else if (view === "topic") await showTopic(what);
    else if (view !== "overview") await showInspected(what);
  });
}

// Styles keep the height of the fixed header free, so that it hides no element that is scrolled to.
function measureHeader() {
  new ResizeObserver(([{ target }]) =>
    document.documentElement.style.setProperty("--bar", `${target.offsetHeight}px`)).observe(byID("bar"));
  byID("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byID("main").focus();
  });
}

startTheme();
measureHeader();
buildOverview();
startTokens();
startInspector();
startTasks();
startPeriods(() => latest && updatePeriods(latest));
startViews();
byID("span").addEventListener("change", (event) => {
  shown = spans.find((series) => String(series.every) === event.target.value) ?? spans[0];
  updateCharts(shown);
});
keepFollowing();
