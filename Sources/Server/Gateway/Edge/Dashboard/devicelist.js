// The list of devices, and the actions of an operator on all devices that match its filters.

import { BulkActions } from "./bulk.js";
import { badge, el } from "./dom.js";
import { count, moment } from "./format.js";
import { choice, ListView, topicInput } from "./listview.js";
import { cell, deviceLink } from "./table.js";
import { holdInk, holdName, holdNames, stateNames } from "./words.js";

const at = (moments) => (moments ? moment(moments) : "–");

function row(device) {
  const [text, ink] = stateNames[device.state] ?? [device.state, "idle"];
  return el("tr", { "data-key": device.token },
    el("th", { scope: "row", class: "start" }, deviceLink(device.token)),
    cell(device.topic, { class: "start" }), el("td", { class: "start" }, badge(text, ink)),
    el("td", { class: "start" }, device.held.length > 0
      ? el("span", { class: "row badges" }, device.held.map((code) => badge(holdName(code), holdInk(code)))) : "–"),
    cell(at(device.eligibleAt)), cell(at(device.lastLaunchAt)), cell(count(device.coalesced)),
    cell(at(device.waitingSince)));
}

export function makeDeviceList() {
  const actions = new BulkActions(() => view.values ?? {}, () => view.refresh());
  const view = new ListView({
    name: "devices", title: "Devices", row, extra: actions.buttons,
    none: "No device is like that.",
    filters: {
      topic: { label: "Topic", input: topicInput() },
      prefix: { label: "Token begins with", input: el("input", { type: "search", autocomplete: "off",
        autocapitalize: "off", spellcheck: "false", placeholder: "any digits" }) },
      state: { label: "State", input: choice([["", "every"],
        ...Object.entries(stateNames).map(([state, [text]]) => [state, text])]) },
      hold: { label: "Hold", input: choice([["", "any or none"], ...Object.entries(holdNames)]) },
      sort: { label: "Order", input: choice([["", "by token"], ["waiting", "longest waiting first"]]) },
    },
    columns: ["Device", "Topic", "State", "Held", "May launch", "Last launch", "Coalesced", "Waits since"],
    starts: ["Topic", "State", "Held"], reason: "Held",
  });
  view.node.insertBefore(actions.outcome, view.host);
  return view;
}
