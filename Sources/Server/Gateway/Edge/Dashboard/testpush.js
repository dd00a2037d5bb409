// A test push to a device: its form, the answer, and its history until it ends.

import { explain, request } from "./api.js";
import { badge, el, fact, fill, link, setText } from "./dom.js";
import { day } from "./format.js";
import { hasEnded, pushState } from "./push.js";
import { address } from "./route.js";
import { eventList } from "./timeline.js";
import { holdName } from "./words.js";

const example = '{"aps": {"content-available": 1}}';
const lookMilliseconds = 700;

const dispositions = {
  launched: "A worker has it already.", scheduled: "It waits for its time.",
  coalesced: "It was merged with a push that waits already.", discarded: "It was accepted, and discarded at once.",
  "no-wake": "It was accepted, but causes no wake: its payload has no content-available of 1.",
};

// Builds the request body from the form's fields; throws an error that the user can fix.
function bodyOf({ topic, priority, collapseID, lifetime, payload }) {
  const body = { priority: Number(priority) };
  try {
    body.payload = JSON.parse(payload);
  } catch (error) {
    throw new SyntaxError(`The payload is not JSON: ${error.message}.`);
  }
  if (topic.trim()) body.topic = topic.trim();
  if (collapseID.trim()) body.collapseID = collapseID.trim();
  if (lifetime.trim()) body.expiration = Math.floor(Date.now() / 1000) + Math.round(Number(lifetime));
  return body;
}

export class TestPush {
  // - topic: the topic of the device; missing for an unknown device, which a push with a topic may register.
  // - reload: shows the device again after its registration.
  constructor(token, { topic = null, reload = null, sent = null } = {}) {
    this.token = token.toLowerCase();
    this.reload = reload;
    this.sent = sent;
    this.inputs = {
      topic: el("input", { name: "topic", value: topic, autocomplete: "off", spellcheck: "false",
        placeholder: "com.example.app" }),
      priority: el("select", { name: "priority" }, ["5", "10", "1"].map((text) => el("option", {}, text))),
      collapseID: el("input", { name: "collapseID", autocomplete: "off", spellcheck: "false", placeholder: "none" }),
      lifetime: el("input", { name: "lifetime", inputmode: "numeric", pattern: "[0-9]*",
        placeholder: "as the policy has it" }),
      payload: el("textarea", { name: "payload", rows: "3", spellcheck: "false", class: "mono" }, example),
    };
    this.button = el("button", { class: "button primary", type: "submit" }, "Send");
    this.outcome = el("p", { class: "hint", role: "status" });
    this.answer = el("dl", { class: "facts" });
    this.way = el("div");
    const label = (text, input, wide = false) => el("label", { class: wide ? "wide" : null }, text, input);
    const { inputs } = this;
    const form = el("form", { class: "whatif-form", onsubmit: (event) => {
      event.preventDefault();
      this.send();
    } }, topic ? null : label("Topic", inputs.topic), label("Priority", inputs.priority),
    label("Collapse id", inputs.collapseID), label("Lifetime (s)", inputs.lifetime),
    label("Payload", inputs.payload, true), el("div", { class: "row" }, this.button, this.outcome));
    this.node = el("section", { class: "panel", "aria-labelledby": "test-push-title" },
      el("h2", { id: "test-push-title" }, "Send a test push"),
      el("p", { class: "hint" }, "It goes the way of a provider's push: it is stored, counted, and wakes the device."),
      form, this.answer, this.way);
  }

  stop() {
    clearTimeout(this.timer);
    this.isStopped = true;
  }

  async send() {
    const values = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.value]));
    this.button.disabled = true;
    clearTimeout(this.timer);
    setText(this.outcome, "");
    try {
      const answer = await request("POST", `/v1/devices/${this.token}/push`, bodyOf(values));
      this.show(answer);
      if (answer.apnsID && answer.status === 200) {
        this.follow(answer.apnsID);
        this.sent?.();
      }
    } catch (error) {
      fill(this.answer);
      fill(this.way);
      setText(this.outcome, error instanceof SyntaxError ? error.message : explain(error, "send test pushes"));
    }
    this.button.disabled = false;
  }

  show({ status, apnsID, disposition, eligibleAt, held, reason }) {
    const isTaken = status === 200;
    setText(this.outcome, isTaken ? dispositions[disposition] ?? "It was taken." : `It was refused: ${reason}.`);
    fill(this.answer,
      fact("Answer", badge(isTaken ? "200" : `${status} ${reason}`, isTaken ? "good" : "bad")),
      disposition ? fact("Disposition", disposition) : null,
      held ? fact("Held", holdName(held)) : null,
      eligibleAt ? fact("May launch", day(eligibleAt)) : null,
      apnsID ? fact("apns-id", link(address("push", apnsID), apnsID, { class: "link" })) : null);
    fill(this.way);
  }

  // Updates the history of the push until it ends.
  async follow(id) {
    if (this.isStopped) return;
    let push = null;
    try {
      push = await request("GET", `/v1/pushes/${id}`);
      if (this.isStopped) return;
      fill(this.way, el("h3", {}, "Its way ", pushState(push)), eventList(push.events));
    } catch {
      // A push appears in the history with a delay; the next attempt may find it.
    }
    if (push && hasEnded(push)) return;
    this.timer = setTimeout(() => this.follow(id), lookMilliseconds);
  }
}
