// The search: a device token or an apns-id, and what the gateway knows of it.

import { Refusal, request } from "./api.js";
import { byID, el, empty } from "./dom.js";
import { DevicePanel } from "./device.js";
import { pushPanel } from "./push.js";

const isDevice = (text) => /^(?:[0-9a-f]{2}){16,100}$/i.test(text);
const isPush = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
let device = null;
// Which search is the last: answers to those before it come too late.
let turn = 0;

const closeButton = () => el("button", { class: "button", type: "button", onclick: close }, "Close");

function close() {
  turn += 1;
  device?.stop();
  device = null;
  byID("inspector").hidden = true;
  byID("inspector").replaceChildren();
  byID("query").focus();
}

function show(...nodes) {
  byID("inspector").replaceChildren(...nodes);
  byID("inspector").hidden = false;
  byID("inspector").scrollIntoView({ block: "nearest" });
}

function showProblem(title, ...text) {
  show(el("div", { class: "panel" }, el("div", { class: "inspector-head" },
    el("h2", { id: "inspector-title" }, title), el("div", { class: "row" }, closeButton())), empty(...text)));
}

async function find(text) {
  turn += 1;
  const mine = turn;
  device?.stop();
  device = null;
  if (!isDevice(text) && !isPush(text)) {
    return showProblem("That is neither a device token nor an apns-id",
      "A device token is 32 to 200 hexadecimal digits, an apns-id looks like ",
      el("code", {}, "9a96d8fb-4351-8e93-6f91-0f7f9be3cc0f"), ".");
  }
  try {
    if (isDevice(text)) {
      const panel = new DevicePanel(text, closeButton(), open);
      await panel.load();
      if (mine !== turn) return panel.stop();
      device = panel;
      show(...panel.nodes);
    } else {
      const push = await request("GET", `/v1/pushes/${encodeURIComponent(text)}`);
      if (mine === turn) show(pushPanel(push, closeButton(), open));
    }
  } catch (error) {
    if (mine !== turn) return;
    const isKnown = error instanceof Refusal;
    showProblem(isKnown && error.status === 404 ? "Not found" : "That did not work",
      isKnown ? error.message : "The gateway does not answer; try again when it is back.");
  }
}

// Shows a push or a device that something on the page names.
export function open(text) {
  byID("query").value = text;
  find(text);
}

export function startInspector() {
  byID("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byID("query").value.trim();
    if (text) find(text);
    else close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !byID("inspector").hidden && !byID("token-dialog").open) close();
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) {
      event.preventDefault();
      byID("query").focus();
    }
  });
}
