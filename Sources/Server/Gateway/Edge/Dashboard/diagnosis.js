// The conditions for launching a push now, with the command that fixes each failed one, if there is one.

import { request } from "./api.js";
import { badge, el, fill } from "./dom.js";
import { local } from "./format.js";

const verdicts = {
  ready: "A push that comes now launches at once.", waiting: "A push that comes now waits for its time.",
  held: "A push that comes now is held back.", inFlight: "A push that comes now waits for what is in flight.",
  unregistered: "A push that comes now is refused.",
};

export class DiagnosisPanel {
  // - path: the path of the device.
  constructor(path) {
    this.path = `${path}/diagnosis`;
    this.hint = el("p", { class: "hint" });
    this.list = el("ul", { class: "checks" });
    this.node = el("section", { class: "panel", "aria-labelledby": "diagnosis-title" },
      el("h2", { id: "diagnosis-title" }, "Checks"), this.hint, this.list);
  }

  async load() {
    const { verdict, checks } = await request("GET", this.path);
    const isUntaken = ["waiting", "inFlight"].includes(verdict)
      && checks.some(({ check, ok }) => check === "handler" && !ok);
    this.verdict = (verdicts[verdict] ?? verdict) + (isUntaken ? " No worker of this gateway takes it then." : "");
    fill(this.hint, this.verdict);
    fill(this.list, checks.map((check) => this.check(check)));
  }

  check({ check, ok, detail, remedy }) {
    return el("li", {},
      el("span", { class: "row" }, badge(ok ? "ok" : "not ok", ok ? "good" : "bad"), el("b", {}, check)),
      el("span", {}, local(detail)), remedy ? el("code", {}, remedy) : null);
  }
}
