// The samples for the charts, from GET /v1/samples and continued by the live stream.

import { sum } from "./format.js";

// Returns the value in an event at a path such as tasks.waiting.appRefresh.
const at = (event, path) => path.split(".").reduce((part, name) => part?.[name], event);

// Converts a live event to a sample: a row of the fields of /v1/samples.
function row(event, fields) {
  const { pushes, wakes, workers, devices } = event.stats;
  const known = {
    at: event.at, accepted: pushes.accepted, noWake: pushes.noWake, rejected: sum(pushes.rejected),
    completed: pushes.completed, coalesced: pushes.coalesced, discarded: sum(pushes.discarded),
    launched: wakes.launched, pending: pushes.pending, inFlight: pushes.inFlight, connected: workers.connected,
    slots: workers.slots, busy: workers.busy, ...wakes.results,
  };
  return fields.map((field) => {
    if (field.startsWith("held.")) return devices.held[field.slice(5)] ?? 0;
    return (field.startsWith("tasks.") ? at(event, field) : known[field]) ?? 0;
  });
}

export class Series {
  // - every: the seconds between two samples.
  constructor(every, countMax) {
    this.every = every;
    this.countMax = countMax;
    this.fields = [];
    this.rows = [];
  }

  // Sets the past samples of the gateway.
  fill(answer) {
    this.fields = answer.fields;
    this.rows = answer.samples.slice(-this.countMax);
  }

  // Adds a live event if it is time for another sample.
  append(event) {
    if (this.fields.length === 0) return;
    const last = this.rows.at(-1)?.[0] ?? 0;
    if (event.at < last - 5000) this.rows = [];
    if (event.at - last < (this.every - 0.4) * 1000) return;
    this.rows.push(row(event, this.fields));
    if (this.rows.length > this.countMax) this.rows.shift();
  }

  get seconds() {
    return this.every * this.countMax;
  }

  // Returns the value of a field at each sample, or the sum of several fields.
  gauge(...fields) {
    const places = fields.map((field) => this.fields.indexOf(field));
    return this.rows.map((values) => ({ at: values[0], value: sum(places.map((place) => values[place])) }));
  }

  // Returns the growth of a counter per second over `steps` samples; null if the gateway was unreachable.
  rate(field, steps = 1) {
    const place = this.fields.indexOf(field);
    return this.differences(steps, (before, now, seconds) => Math.max(0, now[place] - before[place]) / seconds);
  }

  // Returns the share of one counter in the growth of two counters.
  share(part, other, steps) {
    const [a, b] = [this.fields.indexOf(part), this.fields.indexOf(other)];
    return this.differences(steps, (before, now) => {
      const [first, second] = [Math.max(0, now[a] - before[a]), Math.max(0, now[b] - before[b])];
      return first + second > 0 ? first / (first + second) : null;
    });
  }

  differences(steps, value) {
    return this.rows.slice(1).map((now, index) => {
      const before = this.rows[Math.max(0, index + 1 - steps)];
      const isGap = now[0] - this.rows[index][0] > this.every * 3500;
      return { at: now[0], value: isGap ? null : value(before, now, (now[0] - before[0]) / 1000) };
    });
  }
}
