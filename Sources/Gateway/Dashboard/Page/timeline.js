// What happened to a device: as a strip over time, and as a list.

import { el, svg } from "./dom.js";
import { day, duration, minute, moment, time } from "./format.js";

const results = {
  newData: ["new data", "good"], noData: ["no data", "pushes"], failed: ["failed", "warn"], expired: ["expired", "bad"],
  lost: ["lost", "idle"],
};

// What an event is called, and its colour.
export function describe({ event, detail, kind, task, session }) {
  if (kind) return describeTask(event, detail, kind, task ?? session ?? "a name that is not kept");
  const plain = {
    registered: ["Registered", "idle"], removed: ["Removed", "idle"], push: [`Push, ${detail}`, "pushes"],
    launch: [`Launch, ${detail}`, "launches"], discard: [`Discarded: ${detail}`, "bad"],
    conditions: ["Conditions reported", "idle"], extended: [`Given more time, ${detail}`, "idle"],
    received: [`Received, ${detail}`, "pushes"], launched: [`Launched, ${detail}`, "launches"],
    absorbed: ["Took over an older push", "merged"], coalesced: ["Coalesced into a newer push", "merged"],
    discarded: [`Discarded: ${detail}`, "bad"],
  };
  if (event === "result") {
    const [name, ink] = results[detail] ?? [detail, "idle"];
    return [`Result: ${name}`, ink];
  }
  return plain[event] ?? [detail ? `${event}: ${detail}` : event, "idle"];
}

// What happened to a task or a session is called, and its colour.
function describeTask(event, detail, kind, name) {
  const plain = {
    submit: [`Submitted, ${detail}`, "idle"], finished: [`Finished, ${detail}`, "idle"],
    launch: [`Launch, ${detail}`, "launches"], discard: [`Discarded: ${detail}`, "bad"],
    extended: [`Given more time, ${detail}`, "idle"],
    result: [`Result: ${detail}`, { success: "good", failure: "warn", expired: "bad" }[detail] ?? "idle"],
  };
  const [text, ink] = plain[event] ?? [`${event}: ${detail}`, "idle"];
  return [`${kind} ${name}: ${text}`, ink];
}

// - onPush: what a click on an apns-id does; nil to show it as text.
export function eventList(events, onPush) {
  return el("ol", { class: "events", tabindex: "0", "aria-label": "What happened, the newest first" },
    events.map((event) => {
      const [text, ink] = describe(event);
      const id = event.other ?? event.apnsID;
      return el("li", { class: `ink-${ink}` },
        el("time", { datetime: new Date(event.at).toISOString(), title: day(event.at) }, moment(event.at)),
        el("span", { class: "pin", "aria-hidden": "true" }),
        el("div", {}, text, id ? el("div", {}, onPush
          ? el("button", { class: "link", type: "button", onclick: () => onPush(id) }, id)
          : el("span", { class: "id" }, id)) : null));
    }));
}

// The strip of a device's pushes, so many pixels wide: they are above the line, launches on it with the colour of their result, and the launch
// that may come.
export function strip(explain, now, width) {
  const [height, line] = [92, 52];
  const events = explain.recent.filter((event) => !event.kind).toReversed();
  const next = explain.pending ? Math.max(explain.nextEligibleAt ?? now, now) : null;
  const first = Math.max(events[0]?.at ?? now - 60000, now - 48 * 3600000);
  const last = Math.max(now, next && next - now < 2 * (now - first) + 60000 ? next : now);
  const span = Math.max(last - first, 10000);
  const x = (at) => 16 + (at - first) / span * (width - 32);
  const marks = [];
  let launch = null;
  for (const event of events.filter((event) => event.at >= first)) {
    if (event.event === "push") {
      const place = { x1: x(event.at), x2: x(event.at), y1: line - 26, y2: line - 9 };
      marks.push(svg("line", { class: "tick ink-pushes", ...place },
        svg("title", {}, `${time(event.at)} push, ${event.detail}`)));
    } else if (event.event === "launch") {
      launch = svg("circle", { class: "mark ink-launches", cx: x(event.at), cy: line, r: 7 },
        svg("title", {}, `${time(event.at)} launch, ${event.detail}`));
      marks.push(launch);
    } else if (event.event === "result" && launch) {
      launch.setAttribute("class", `mark ink-${(results[event.detail] ?? ["", "idle"])[1]}`);
    } else if (event.event === "discard") {
      marks.push(svg("path", { class: "tick ink-bad", fill: "none",
        d: `M${x(event.at) - 4} ${line + 9}l8 8m0-8l-8 8` }, svg("title", {}, `${time(event.at)} discarded`)));
    }
  }
  if (next !== null && next <= last) {
    marks.push(svg("circle", { class: "future ink-launches", cx: x(next), cy: line, r: 7, "stroke-dasharray": "3 2.5" },
      svg("title", {}, `${time(next)} may launch`)));
  }
  const label = (at, text, anchor) => svg("text", { x: x(at), y: height - 6, "text-anchor": anchor }, text);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${events.length} events in ${duration(span)}` },
  svg("line", { class: "axis", x1: 0, x2: width, y1: line, y2: line }),
  svg("line", { class: "now", x1: x(now), x2: x(now), y1: 14, y2: line + 18 }), ...marks,
  label(first, minute(first), "start"), last > now + span / 8 ? label(last, minute(last), "end") : null,
  svg("text", { x: x(now), y: 10, "text-anchor": x(now) > width - 60 ? "end" : "middle" }, "now"));
}
