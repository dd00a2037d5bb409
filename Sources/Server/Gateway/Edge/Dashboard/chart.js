// Charts in plain SVG: lines or stacked areas over time, with a cursor for pointer and keyboard.

import { el, setText, svg } from "./dom.js";
import { minute, time } from "./format.js";

const margin = { top: 8, right: 6, bottom: 20, left: 40 };

// Returns a round number that is at least `most` and divisible by four.
function ceiling(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((factor) => factor * power).find((number) => number >= most * 1.02) ?? 20 * power;
}

// Returns times that are round on a clock, about one for every 110 pixels.
function clockTicks(from, to, width) {
  const steps = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
  const wanted = (to - from) / 1000 / Math.max(2, width / 110);
  const step = (steps.find((seconds) => seconds >= wanted) ?? 86400) * 1000;
  const offset = new Date(to).getTimezoneOffset() * 60000;
  const ticks = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) ticks.push(at);
  return { ticks, isFine: step < 60000 };
}

// Returns the path of the points with values, interrupted at points without values.
function path(points, x, y) {
  let isOpen = false;
  return points.map((point) => {
    if (point.value === null) {
      isOpen = false;
      return "";
    }
    const step = `${isOpen ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`;
    isOpen = true;
    return step;
  }).join("");
}

function pieces(points) {
  const found = [[]];
  for (const point of points) {
    if (point.value === null) found.push([]);
    else found.at(-1).push(point);
  }
  return found.filter((piece) => piece.length > 1);
}

const areas = (points, x, y, base) => pieces(points).map((piece) => {
  const back = piece.toReversed().map((point) => `L${x(point.at).toFixed(1)} ${y(base(point)).toFixed(1)}`).join("");
  return `${path(piece, x, y)}${back}Z`;
}).join("");

export class Chart {
  // - parts: the lines or areas: `{ name, ink, points(series) }`.
  // - options: `format` of values, `isStacked`, a fixed `most`.
  constructor(title, parts, options) {
    this.title = title;
    this.parts = parts;
    this.options = options;
    this.cursor = null;
    this.values = parts.map(() => el("b", {}, "–"));
    const legend = parts.map((part, index) =>
      el("li", { class: `ink-${part.ink}` }, el("span", { class: "swatch" }), part.name, this.values[index]));
    this.when = el("span", { class: "hidden" });
    this.picture = svg("svg", { role: "img", tabindex: "0", "aria-label": title });
    this.node = el("article", { class: "chart" },
      el("div", { class: "chart-head" }, el("h3", {}, title), el("ul", { class: "legend" }, legend)), this.picture);
    this.picture.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.picture.addEventListener("pointerleave", () => this.move(null));
    this.picture.addEventListener("blur", () => this.move(null));
    this.picture.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.picture);
  }

  update(series) {
    this.data = this.parts.map((part) => part.points(series));
    this.to = series.rows.at(-1)?.[0] ?? Date.now();
    this.from = this.to - series.seconds * 1000;
    this.draw();
  }

  key(event) {
    const last = (this.data?.[0].length ?? 0) - 1;
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") return this.move(null);
    if (last < 0 || !(event.key in moves)) return;
    event.preventDefault();
    this.move(Math.min(last, Math.max(0, (this.cursor ?? last) + moves[event.key])));
  }

  point(pixel) {
    if (!this.data || this.data[0].length === 0) return;
    const at = this.from + (pixel - margin.left) / (this.width - margin.left - margin.right) * (this.to - this.from);
    const distance = (index) => Math.abs(this.data[0][index].at - at);
    this.move(this.data[0].reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0));
  }

  move(cursor) {
    this.cursor = cursor;
    this.draw();
  }

  draw() {
    const { width, height } = this.picture.getBoundingClientRect();
    if (!this.data || width < 80) return;
    this.width = width;
    const stacked = this.options.isStacked ? this.stack() : this.data;
    const most = this.options.most ?? ceiling(Math.max(0, ...stacked.flat().map((point) => point.value ?? 0)));
    const x = (at) =>
      margin.left + (at - this.from) / (this.to - this.from) * (width - margin.left - margin.right);
    const y = (value) => height - margin.bottom - value / most * (height - margin.top - margin.bottom);
    const shown = this.cursor === null ? null : Math.min(this.cursor, this.data[0].length - 1);
    this.picture.replaceChildren(...this.grid(x, y, most, width, height), ...this.shapes(stacked, x, y),
      ...this.mark(shown, stacked, x, y, height));
    this.tell(shown);
  }

  // Stacks each part on the earlier parts.
  stack() {
    const base = new Map();
    return this.data.map((points) => points.map((point) => {
      if (point.value === null) return { ...point, base: 0 };
      const below = base.get(point.at) ?? 0;
      base.set(point.at, below + point.value);
      return { at: point.at, value: below + point.value, base: below };
    }));
  }

  grid(x, y, most, width, height) {
    const lines = [0, 1, 2, 3, 4].map((quarter) => {
      const value = most * quarter / 4;
      const place = { x: margin.left - 6, y: y(value) + 4, "text-anchor": "end" };
      return svg("g", {},
        svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
        quarter % 2 === 0 ? svg("text", place, this.options.format(value)) : null);
    });
    const { ticks, isFine } = clockTicks(this.from, this.to, width - margin.left);
    return lines.concat(ticks.filter((at) => x(at) > margin.left + 18 && x(at) < width - 22).map((at) =>
      svg("text", { x: x(at), y: height - 4, "text-anchor": "middle" }, isFine ? time(at) : minute(at))));
  }

  shapes(stacked, x, y) {
    return stacked.map((points, index) => {
      const part = this.parts[index];
      const area = areas(points, x, y, (point) => point.base ?? 0);
      return svg("g", { class: `ink-${part.ink}` },
        svg("path", { class: this.options.isStacked ? "area stacked" : "area", d: area }),
        this.options.isStacked ? null : svg("path", { class: "line", d: path(points, x, y) }));
    });
  }

  mark(shown, stacked, x, y, height) {
    if (shown === null || shown < 0) return [];
    const at = x(stacked[0][shown].at);
    const dots = this.options.isStacked ? [] : stacked.map((points, index) => (points[shown]?.value === null ? null
      : svg("circle", { class: `mark ink-${this.parts[index].ink}`, cx: at, cy: y(points[shown].value), r: 4 })));
    return [svg("line", { class: "cursor", x1: at, x2: at, y1: margin.top, y2: height - margin.bottom }), ...dots]
      .filter((node) => node !== null);
  }

  tell(shown) {
    const format = (value) => (value === null || value === undefined ? "–" : this.options.format(value));
    this.values.forEach((node, index) =>
      setText(node, format((shown === null ? this.data[index].at(-1) : this.data[index][shown])?.value)));
    const at = shown === null ? null : this.data[0][shown]?.at;
    const parts = this.parts.map((part, index) => `${part.name} ${this.values[index].textContent}`).join(", ");
    this.picture.setAttribute("aria-label", `${this.title}, ${at ? `at ${time(at)}` : "now"}: ${parts}`);
  }
}

// A line without axes, for a tile.
export class Sparkline {
  constructor(ink) {
    this.picture = svg("svg", { "aria-hidden": "true", class: `ink-${ink}`, preserveAspectRatio: "none" });
  }

  update(points) {
    const values = points.filter((point) => point.value !== null);
    if (values.length < 2) return this.picture.replaceChildren();
    const [from, to] = [values[0].at, values.at(-1).at];
    const most = Math.max(...values.map((point) => point.value)) || 1;
    const x = (at) => (at - from) / (to - from) * 100;
    const y = (value) => 29 - value / most * 26;
    this.picture.setAttribute("viewBox", "0 0 100 30");
    this.picture.replaceChildren(
      svg("path", { class: "area", d: areas(points, x, y, () => -1) }),
      svg("path", { class: "line", d: path(points, x, y) }));
  }
}
