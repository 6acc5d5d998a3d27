// What the page says, in the language of the service; times as people read them.

let words = {};
let language = "pt";

/** Take the words that the service has. */
export function learn(said) {
  words = said.words;
  language = said.lang;
  document.documentElement.lang = language === "pt" ? "pt-BR" : language;
}

/** Return a sentence with its values. */
export function say(key, values = {}) {
  const text = words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

/** Return a time span in its two largest units: 45s, 12m05s, 3h07m, 2d4h. */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(whole / unit));
  const two = (number) => String(number).padStart(2, "0");
  if (days) return `${days}d${hours % 24}h`;
  if (hours) return `${hours}h${two(minutes % 60)}m`;
  return minutes ? `${minutes}m${two(whole % 60)}s` : `${whole}s`;
}

/** Return a short time span with its fractions: 3ms, 0.25s, else as `span`. */
export function fine(seconds) {
  if (seconds === null) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`;
  return seconds < 10 ? `${seconds.toFixed(1)}s` : span(seconds);
}

/** Return a round time span in one unit: 100ms, 30s, 5m, 1h, 1d. */
export function round(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`;
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const [unit, size] = units.find(([, size]) => seconds >= size);
  return `${Math.round(seconds / size)}${unit}`;
}

/** Return a countdown: 12:05, 3:07:09. */
export function countdown(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, n) => (n ? String(part).padStart(2, "0") : part)).join(":");
}

/** Return a local time; with its day where that is not today. */
export function clock(text) {
  if (!text) return "–";
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text; // as others wrote it
  const time = at.toLocaleTimeString(language, { hour12: false });
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.toLocaleDateString(language, { dateStyle: "short" })} ${time}`;
}

/** Return a number of hours. */
export function hours(number) {
  return `${number.toLocaleString(language, { maximumFractionDigits: number < 1 ? 2 : 1 })} h`;
}
