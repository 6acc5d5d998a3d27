// The past in plots: bars are elements, so that they fit any width and can be read out.

import { make, table } from "./build.js";
import { ask } from "./service.js";
import { clock, fine, hours, round, say, span } from "./words.js";

const SPANS = [7, 30, 90];

/** The history of some days, asked for when it is opened and when it has changed. */
export class History {
  constructor() {
    this.days = 30;
    this.choice = make(
      "select",
      { id: "days", change: () => this.choose() },
      ...SPANS.map((days) =>
        make("option", { value: days, selected: days === this.days }, say("page_days", { count: days })),
      ),
    );
    this.plots = make("div", { class: "plots" });
    this.element = make(
      "div",
      {},
      make("p", { class: "choice" }, make("label", { for: "days" }, say("page_span")), this.choice),
      this.plots,
    );
  }

  async choose() {
    this.days = Number(this.choice.value);
    try {
      await this.load();
    } catch (error) {
      this.plots.replaceChildren(make("p", {}, say("page_failed", { detail: error.message })));
    }
  }

  async load() {
    const said = await ask(`/v1/history?days=${this.days}`);
    const text = JSON.stringify(said);
    if (text === this.shown) return;
    this.shown = text;
    this.plots.replaceChildren(...plotsOf(said.history, said.ended));
  }
}

function plotsOf(history, ended) {
  return [
    figure("page_by_day", history.days.some((day) => day.hours > 0) && columns(history.days)),
    figure("page_by_lock", shares(history.locks)),
    figure("page_by_host", shares(history.hosts)),
    times("page_spread", history.waits, span),
    times("page_release_line", history.release_to_line, fine),
    times("page_line_delivery", history.line_to_delivery, fine),
    history.left_out ? make("p", {}, say("page_left_out")) : null,
    ended.length ? endedTable(ended) : null,
  ].filter(Boolean);
}

function figure(key, content, note = "") {
  return make(
    "figure",
    {},
    make("figcaption", {}, say(key)),
    content || make("p", { class: "empty" }, say("page_no_data")),
    note ? make("p", { class: "small" }, note) : null,
  );
}

/** Return one column a day, the highest over the whole height. */
function columns(days) {
  const most = Math.max(...days.map((day) => day.hours));
  const bars = days.map((day) => {
    const told = `${day.day}: ${hours(day.hours)}`;
    const bar = make("span", { class: "column" });
    bar.style.height = `${(100 * day.hours) / most}%`;
    return make("li", { title: told, "aria-label": told }, bar);
  });
  return make(
    "div",
    { class: "chart" },
    make("p", { class: "small" }, hours(most)),
    make("ol", { class: "columns" }, ...bars),
    make("p", { class: "small ends" }, make("span", {}, days[0].day), make("span", {}, days.at(-1).day)),
  );
}

function shares(all) {
  if (!all.length) return null;
  const most = Math.max(...all.map((one) => one.hours), Number.MIN_VALUE);
  return rows(all.map((one) => [one.name ?? say("page_here"), one.hours / most, `${hours(one.hours)} (${one.waits})`]));
}

function times(key, all, show) {
  if (!all.count) return figure(key, null);
  const most = Math.max(...all.buckets.map((bucket) => bucket.count));
  const note = say("page_times", {
    count: all.count,
    median: show(all.median_s),
    p95: show(all.p95_s),
    longest: show(all.longest_s),
  });
  const bars = all.buckets.map((bucket) => [
    bucket.up_to_s === null ? say("page_longer") : say("page_up_to", { span: round(bucket.up_to_s) }),
    bucket.count / most,
    String(bucket.count),
  ]);
  return figure(key, rows(bars), note);
}

/** Return a bar a row: its name, its share of the longest, its value. */
function rows(all) {
  return make(
    "ul",
    { class: "bars" },
    ...all.map(([name, share, value]) => {
      const bar = make("span", { class: "bar" });
      bar.style.width = `${100 * share}%`;
      return make(
        "li",
        {},
        make("span", { class: "name", title: name }, name),
        make("span", { class: "track" }, bar),
        make("span", { class: "value" }, value),
      );
    }),
  );
}

function endedTable(watches) {
  const heads = ["page_when", "page_state", "page_what", "page_host", "page_waited"].map((key) => say(key));
  const rows = watches.map((watch) => [
    clock(watch.ended_at),
    say(`state_${watch.state}`) + (watch.result ? ` [${watch.result}]` : ""),
    watch.label,
    watch.host ?? say("page_here"),
    span((new Date(watch.ended_at) - new Date(watch.armed_at)) / 1000),
  ]);
  return make("details", { class: "wide" }, make("summary", {}, say("page_ended_table")), table(heads, rows));
}
