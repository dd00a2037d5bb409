// Formats numbers, durations and times for people.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const count = (number) => (Math.abs(number) < 100000 ? whole.format(number) : short.format(number));

// The sum of the numbers of an object, or of an array.
export const sum = (object) => Object.values(object).reduce((total, number) => total + number, 0);

// Formats a rate or a ratio with three significant digits.
export function rate(number) {
  if (number === null || !Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  if (number < 0.01) return "<0.01";
  if (number < 10) return String(Number(number.toFixed(number < 1 ? 2 : 1)));
  return number < 1000 ? whole.format(Math.round(number)) : short.format(number);
}

export const percent = (share) =>
  (Number.isFinite(share) ? `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %` : "–");

export function bytes(number) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${number < 10 && unit > 0 ? number.toFixed(1) : Math.round(number)} ${units[unit]}`;
}

// Formats milliseconds in the two largest units.
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  let rest = Math.round(milliseconds / 1000);
  const parts = [];
  for (const [name, length] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    if (parts.length < 2 && (rest >= length || (parts.length === 1 && rest > 0))) {
      if (rest >= length) parts.push(`${Math.floor(rest / length)} ${name}`);
      rest %= length;
    }
  }
  return parts.join(" ") || "0 s";
}

// Formats milliseconds as a stopwatch does: 1:02:03, 12:34.
export function clock(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const shortTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayTime = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

// Rounds a time up to whole seconds, as the gateway's sentences and the commands do.
const told = (at) => Math.ceil(at / 1000) * 1000;

export const time = (at) => clockTime.format(told(at));
export const minute = (at) => shortTime.format(at);
export const day = (at) => dayTime.format(told(at));

const spokenTime = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

// Converts the times in a sentence of the gateway to the user's time zone, and names the zone.
export const local = (sentence) =>
  sentence.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (at) => spokenTime.format(new Date(at)));

// A time without the date if it is within 12 hours; otherwise with the date.
export const moment = (at) => (Math.abs(Date.now() - at) < 12 * 3600 * 1000 ? time(at) : day(at));
