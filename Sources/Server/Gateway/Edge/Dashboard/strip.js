// The timeline of a device: one line for its pushes, another for its background tasks.

import { svg } from "./dom.js";
import { duration, minute, time } from "./format.js";
import { taskName } from "./task.js";
import { describe, outcomeInk } from "./timeline.js";

const titled = (name, attributes, at, text) => svg(name, attributes, svg("title", {}, `${time(at)} ${text}`));

const cross = (x, y, at, text) =>
  titled("path", { class: "tick ink-bad", fill: "none", d: `M${x - 4} ${y + 9}l8 8m0-8l-8 8` }, at, text);

const tick = (x, y, ink, at, text) =>
  titled("line", { class: `tick ink-${ink}`, x1: x, x2: x, y1: y - 26, y2: y - 9 }, at, text);

const dot = (x, y, at, text) => titled("circle", { class: "mark ink-launches", cx: x, cy: y, r: 7 }, at, text);

const future = (x, y, at, text) =>
  titled("circle", { class: "future ink-launches", cx: x, cy: y, r: 7, "stroke-dasharray": "3 2.5" }, at, text);

// Draws pushes above the line, and launches on the line in the color of their result.
function pushMarks(events, x, line) {
  const marks = [];
  let launch = null;
  for (const { at, event, detail } of events) {
    if (event === "push") marks.push(tick(x(at), line, "pushes", at, `push, ${detail}`));
    else if (event === "launch") marks.push(launch = dot(x(at), line, at, `launch, ${detail}`));
    else if (event === "result") launch?.setAttribute("class", `mark ink-${outcomeInk(detail)}`);
    else if (event === "discard") marks.push(cross(x(at), line, at, "discarded"));
  }
  return marks;
}

// Draws submissions above the line, and launches on the line in the color of their result, with a bar for their
// duration.
function taskMarks(events, running, x, line, now) {
  const [bars, marks, launches] = [[], [], new Map()];
  const end = (key, until, ink) => {
    const launch = launches.get(key);
    if (!launch) return;
    launches.delete(key);
    launch.dot.setAttribute("class", `mark ink-${ink}`);
    bars.push(svg("line", { class: `run ink-${ink}`, x1: x(launch.at), x2: x(until), y1: line, y2: line }));
  };
  for (const happening of events) {
    const { at, event, kind, task, session, detail } = happening;
    const key = `${kind} ${task ?? session}`;
    const [text] = describe(happening);
    if (event === "submit" || event === "finished") marks.push(tick(x(at), line, "idle", at, text));
    else if (event === "discard") marks.push(cross(x(at), line, at, text));
    else if (event === "result") end(key, at, outcomeInk(detail));
    else if (event === "launch") {
      launches.set(key, { at, dot: dot(x(at), line, at, text) });
      marks.push(launches.get(key).dot);
    }
  }
  for (const task of running) end(`${task.kind} ${taskName(task)}`, now, "launches");
  return [...bars, ...marks];
}

// Returns the possible launches with their times: the pending push, and tasks that wait for their time.
function futures(explain, now) {
  const push = explain.pending ? [{ at: Math.max(explain.nextEligibleAt ?? now, now), text: "may launch" }] : [];
  const tasks = explain.tasks.waiting.filter((task) => task.eligibleAt > now && !task.held).map((task) =>
    ({ at: task.eligibleAt, text: `${task.kind} ${taskName(task)} may launch`, isTask: true }));
  return [...push, ...tasks];
}

// Returns the timeline of a device with a width in pixels. A device without tasks has no line for them.
export function strip(explain, now, width) {
  const events = explain.recent.toReversed();
  const { waiting, running } = explain.tasks;
  const hasTasks = waiting.length + running.length > 0 || events.some((event) => event.kind);
  const [line, taskLine, height, left] = hasTasks ? [52, 112, 154, 58] : [52, 52, 92, 16];
  const first = Math.max(events[0]?.at ?? now - 60000, now - 48 * 3600000);
  const next = futures(explain, now).filter(({ at }) => at - now < 2 * (now - first) + 60000);
  const last = Math.max(now, ...next.map(({ at }) => at));
  const span = Math.max(last - first, 10000);
  const x = (at) => left + (at - first) / span * (width - left - 16);
  const shown = events.filter((event) => event.at >= first);
  const label = (at, text, anchor) => svg("text", { x: x(at), y: height - 6, "text-anchor": anchor }, text);
  const axis = (y, name) => [svg("line", { class: "axis", x1: hasTasks ? left - 10 : 0, x2: width, y1: y, y2: y }),
    hasTasks ? svg("text", { x: 0, y: y + 4 }, name) : null];
  const frame = { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${events.length} events in ${duration(span)}` };
  const picture = svg("svg", frame,
    axis(line, "Pushes"), hasTasks ? axis(taskLine, "Tasks") : null,
    svg("line", { class: "now", x1: x(now), x2: x(now), y1: 14, y2: taskLine + 18 }),
    pushMarks(shown.filter((event) => !event.kind), x, line),
    hasTasks ? taskMarks(shown.filter((event) => event.kind), running, x, taskLine, now) : null,
    next.map(({ at, text, isTask }) => future(x(at), isTask ? taskLine : line, at, text)),
    label(first, minute(first), "start"), last > now + span / 8 ? label(last, minute(last), "end") : null,
    svg("text", { x: x(now), y: 10, "text-anchor": x(now) > width - 60 ? "end" : "middle" }, "now"));
  picture.style.blockSize = `${height}px`;
  return picture;
}
