// Actions on all devices that match the filters of a list, after a confirmation that shows their number.

import { explain, Refusal, request } from "./api.js";
import { el, setText } from "./dom.js";
import { count } from "./format.js";

// `states` are the states of the devices to which an action applies. `act` performs it on one device and returns the
// reason if it failed.
const actions = {
  launch: { button: "Launch…", title: "Launch now", done: "launched", ink: "", states: ["pending", "held"],
    text: "The pending push or task of each launches at once, outside interval, budget and holds.",
    act: (path) => request("POST", `${path}/simulate-launch?pending=1`) },
  drop: { button: "Drop…", title: "Drop pending pushes", done: "dropped", ink: " danger",
    states: ["pending", "held", "inFlight"],
    text: "The push that waits for each is discarded. It cannot be brought back.",
    act: async (path) => ((await request("DELETE", `${path}/pending`)).dropped > 0 ? null : "NothingPending") },
  expire: { button: "Expire…", title: "Expire what is in flight", done: "expired", ink: " danger",
    states: ["inFlight"],
    text: "The wake in flight of each ends now, as expired; its push may launch again.",
    act: (path) => request("POST", `${path}/simulate-expiration`) },
};

// The number of devices in a page of the list, small enough for a quick answer.
const pageLimit = 1000;

export class BulkActions {
  // - filters: returns the filters of the list.
  // - refresh: reloads the list.
  constructor(filters, refresh) {
    this.filters = filters;
    this.refresh = refresh;
    this.outcome = el("p", { class: "hint", role: "status" });
    const scope = "For every device that the filters let through";
    this.buttons = el("div", { class: "row", role: "group", "aria-label": scope },
      Object.entries(actions).map(([action, { button, title, ink }]) => el("button", { class: `button${ink}`,
        type: "button", title: `${title}, for every device that the filters let through`,
        onclick: () => this.prepare(action) }, button)));
  }

  // Returns the devices of the whole list to which an action applies.
  async find(action, say) {
    const filters = Object.entries(this.filters())
      .filter(([name, value]) => value && !["after", "sort"].includes(name));
    const query = new URLSearchParams([...filters, ["limit", pageLimit]]);
    const found = [];
    for (;;) {
      const page = await request("GET", `/v1/devices?${query}`);
      const { states } = actions[action];
      found.push(...page.devices.filter(({ state }) => states.includes(state)).map(({ token }) => token));
      if (!page.next) return found;
      query.set("after", page.next);
      say(found.length);
    }
  }

  async prepare(action) {
    const opener = document.activeElement;
    this.disable(true);
    try {
      const found = await this.find(action, (number) => setText(this.outcome, `Counting: ${count(number)} so far.`));
      setText(this.outcome, "");
      this.disable(false);
      if (await this.confirm(action, found.length)) await this.perform(action, found);
    } catch (error) {
      setText(this.outcome, explain(error, "act on a list of devices"));
    }
    this.disable(false);
    opener?.focus();
  }

  async perform(action, tokens) {
    this.disable(true);
    const { act, done: word } = actions[action];
    const refused = {};
    let done = 0;
    for (const token of tokens) {
      let reason = null;
      try {
        reason = await act(`/v1/devices/${token}`);
      } catch (error) {
        // The action may succeed for the next device.
        if (!(error instanceof Refusal) || error.status >= 500) throw error;
        reason = error.reason;
      }
      if (typeof reason === "string") refused[reason] = (refused[reason] ?? 0) + 1;
      else done += 1;
      setText(this.outcome, `${count(done)} of ${count(tokens.length)} ${word} so far.`);
    }
    const rest = Object.entries(refused).map(([reason, number]) => `${count(number)} refused: ${reason}`);
    setText(this.outcome, `${[`${count(done)} ${word}`, ...rest].join(", ")}.`);
    await this.refresh();
  }

  // Asks for confirmation and shows the number of devices. The button that changes nothing has the focus.
  confirm(action, matched) {
    const { title, text, ink } = actions[action];
    const parts = Object.entries(this.filters()).filter(([name, value]) => value && name !== "after")
      .map(([name, value]) => `${name} ${value}`);
    const number = `${count(matched)} ${matched === 1 ? "device" : "devices"}`;
    const dialog = el("dialog", { "aria-labelledby": "bulk-title" }, el("form", { method: "dialog" },
      el("h2", { id: "bulk-title" }, `${title}: ${number}`),
      el("p", {}, parts.length > 0 ? `With ${parts.join(", ")}. ${text}` : `All devices of this gateway. ${text}`),
      el("div", { class: "row" },
        el("button", { class: "button", value: "", autofocus: true }, "Cancel"),
        matched > 0 ? el("button", { class: `button primary${ink}`, value: "yes" },
          `${title} (${count(matched)})`) : null)));
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => {
        dialog.remove();
        resolve(dialog.returnValue === "yes");
      });
    });
  }

  disable(isDisabled) {
    for (const button of this.buttons.children) button.disabled = isDisabled;
  }
}
