// The pending push of a device: its headers, and its payload on request.

import { explain, Refusal, request } from "./api.js";
import { el, fact, fill, link, setText } from "./dom.js";
import { day } from "./format.js";
import { address } from "./route.js";

export class WaitingPush {
  // - path: the path of the device.
  // - refresh: reloads the device.
  constructor(path, refresh) {
    this.path = path;
    this.refresh = refresh;
    this.reveal = el("button", { class: "button", type: "button", onclick: () => this.look() },
      "Show headers and payload");
    this.drop = el("button", { class: "button danger", type: "button", onclick: () => this.discard() },
      "Drop waiting push");
    this.outcome = el("p", { class: "hint", role: "status" });
    this.headers = el("dl", { class: "facts" });
    this.payload = el("pre", { class: "payload", tabindex: "0", "aria-label": "Payload", hidden: true });
    this.heading = el("h2", { id: "waiting-title", tabindex: "-1" }, "What waits");
    this.node = el("section", { class: "panel", "aria-labelledby": "waiting-title", hidden: true },
      el("div", { class: "section-head" }, this.heading, el("div", { class: "row" }, this.reveal, this.drop)),
      this.outcome, this.headers, this.payload);
  }

  // The shown payload belongs to one push. The payload of a later pending push is shown only on request.
  update({ pending }) {
    const isAnother = pending?.apnsID !== this.shown;
    this.reveal.hidden = !pending;
    this.drop.hidden = !pending;
    if (this.shown && isAnother) this.conceal();
    this.node.hidden = !pending && this.outcome.textContent === "";
  }

  conceal() {
    this.shown = null;
    fill(this.headers);
    this.payload.hidden = true;
    setText(this.payload, "");
  }

  async look() {
    try {
      const push = await request("GET", `${this.path}/pending`);
      this.shown = push.apnsID;
      setText(this.outcome, "");
      fill(this.headers, fact("apns-id", link(address("push", push.apnsID), push.apnsID, { class: "link" })),
        fact("apns-priority", String(push.priority)), fact("Received", day(push.receivedAt)),
        fact("apns-expiration", push.expiresAt ? day(push.expiresAt) : "none"),
        fact("apns-collapse-id", push.collapseID ?? "none"));
      setText(this.payload, JSON.stringify(push.payload, null, 2));
      this.payload.hidden = false;
    } catch (error) {
      this.conceal();
      this.say(error, "show pending work");
    }
  }

  async discard() {
    this.drop.disabled = true;
    try {
      const { dropped } = await request("DELETE", `${this.path}/pending`);
      this.conceal();
      setText(this.outcome, dropped > 0 ? "The waiting push was dropped." : "Nothing waited any more.");
      this.heading.focus();
    } catch (error) {
      this.say(error, "drop pending pushes");
    }
    this.drop.disabled = false;
    await this.refresh();
  }

  say(error, what) {
    const isGone = error instanceof Refusal && error.reason === "NothingPending";
    setText(this.outcome, isGone ? "Nothing waits any more." : explain(error, what));
  }
}
