// The search for a device token or an apns-id, and its result.

import { explain, Refusal, request } from "./api.js";
import { byID, el, empty, link } from "./dom.js";
import { DevicePanel } from "./device.js";
import { pushHeir, pushPanel } from "./push.js";
import { address, go, leave, replace } from "./route.js";
import { TestPush } from "./testpush.js";
import { WhatIf } from "./whatif.js";

const isDevice = (text) => /^(?:[0-9a-f]{2}){16,100}$/i.test(text);
// The first digits of a token: fewer than a token has, or an odd number.
const isPrefix = (text) => /^[0-9a-f]{4,200}$/i.test(text) && !isDevice(text);
const isPush = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
let panel = null;
// The number of the latest search. Answers to earlier searches are ignored.
let turn = 0;

const closeButton = () => el("button", { class: "button", type: "button", onclick: leave }, "Close");

// Hides the inspected object and stops its requests.
export function hideInspector() {
  turn += 1;
  panel?.stop();
  panel = null;
  byID("inspector").hidden = true;
  byID("inspector").replaceChildren();
}

// The heading gets the focus, so that keyboard and screen reader users are at the beginning of the answer.
function show(...nodes) {
  byID("inspector").replaceChildren(...nodes);
  byID("inspector").hidden = false;
  byID("inspector-title").tabIndex = -1;
  byID("inspector-title").focus({ preventScroll: true });
}

function showProblem(title, text, ...others) {
  show(el("div", { class: "panel" }, el("div", { class: "inspector-head" },
    el("h2", { id: "inspector-title" }, title), el("div", { class: "row" }, closeButton())), empty(...text)),
  ...others);
}

async function inspect(token, mine) {
  const next = new DevicePanel(token, closeButton());
  try {
    await next.load();
  } catch (error) {
    next.stop();
    if (mine !== turn || !(error instanceof Refusal && error.status === 404)) throw error;
    const test = new TestPush(token, { reload: () => go(address("device", token)) });
    panel = test;
    return showProblem("Not found", [error.message], test.node);
  }
  if (mine !== turn) return next.stop();
  panel = next;
  show(...next.nodes);
}

async function follow(id, mine) {
  const push = await request("GET", `/v1/pushes/${encodeURIComponent(id)}`);
  const heir = await pushHeir(push, () => mine === turn);
  if (mine === turn) show(pushPanel(push, heir, closeButton()));
}

// Searches the devices whose tokens begin with some digits. Shows a single device, or the list of several.
async function find(prefix, mine) {
  const { devices } = await request("GET", `/v1/devices?${new URLSearchParams({ prefix, limit: 2 })}`);
  if (mine !== turn) return;
  if (devices.length === 1) return replace(address("device", devices[0].token));
  if (devices.length > 1) return replace(address("devices", "", { prefix }));
  showProblem("Not found", [`No registered device has a token that begins with ${prefix}.`]);
}

// Reports that an address has no content.
export function showUnknown(path) {
  showProblem("Not found", ["This dashboard has nothing at the address ", el("code", {}, `#/${path}`), ". Go to the ",
    link("#/", "overview"), "."]);
}

// Shows the object that a device token, its first digits or an apns-id identifies.
export async function showInspected(text) {
  hideInspector();
  const mine = turn;
  byID("query").value = text;
  const lookUp = isDevice(text) ? inspect : isPush(text) ? follow : isPrefix(text) ? find : null;
  if (!lookUp) {
    return showProblem("That is neither a device token nor an apns-id", [
      "A device token is 32 to 200 hexadecimal digits, of which the first 4 are enough. An apns-id looks like ",
      el("code", {}, "9a96d8fb-4351-8e93-6f91-0f7f9be3cc0f"), "."]);
  }
  try {
    await lookUp(text, mine);
  } catch (error) {
    if (mine !== turn) return;
    const isMissing = error instanceof Refusal && error.status === 404;
    showProblem(isMissing ? "Not found" : "That did not work", [explain(error, "say anything of it")]);
  }
}

// Shows a topic: links to its lists, and a comparison with another policy.
export async function showTopic(topic) {
  hideInspector();
  const whatIf = new WhatIf(`/v1/topics/${encodeURIComponent(topic)}`, true);
  const lists = ["devices", "pushes", "workers", "events"]
    .flatMap((list) => [" ", link(address(list, "", { topic }), list)]);
  show(el("div", { class: "panel" },
    el("div", { class: "inspector-head" },
      el("div", {}, el("h2", { id: "inspector-title" }, `Topic ${topic}`),
        el("p", { class: "why" }, "Its lists:", lists)),
      el("div", { class: "row" }, closeButton()))),
  whatIf.node);
  await whatIf.load();
}

export function startInspector() {
  byID("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byID("query").value.trim();
    if (!text) return leave();
    go(address(isDevice(text) ? "device" : isPush(text) ? "push" : "find", text.toLowerCase()));
  });
  document.addEventListener("keydown", (event) => {
    const isDialogOpen = document.querySelector("dialog[open]") !== null;
    if (event.key === "Escape" && !byID("inspector").hidden && !isDialogOpen) leave();
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !isDialogOpen && !isTyping) {
      event.preventDefault();
      byID("query").focus();
    }
  });
}
