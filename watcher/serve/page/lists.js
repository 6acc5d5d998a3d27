// Outcomes, pings and hosts: lists that are made anew where they have changed.

import { make, table } from "./build.js";
import { clock, say } from "./words.js";

const MOST = 50; // rows; the commands show all

/** A list that is only rebuilt where what it shows is another thing. */
class List {
  constructor(empty, build) {
    this.empty = empty;
    this.build = build;
    this.element = make("div");
  }

  show(items) {
    const text = JSON.stringify(items);
    if (text === this.shown) return;
    this.shown = text;
    const focused = this.element.contains(document.activeElement) ? document.activeElement.id : "";
    const more = items.length - MOST;
    this.element.replaceChildren(
      items.length ? this.build(items.slice(0, MOST)) : make("p", { class: "empty" }, say(this.empty)),
      more > 0 ? make("p", { class: "empty" }, say("page_and_more", { count: more })) : "",
    );
    document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

/** Return the list of outcomes that nobody has acknowledged. */
export function openOutcomes(actions) {
  return new List("page_no_open", (outcomes) =>
    make("ul", { class: "rows" }, ...outcomes.map((outcome) => openOutcome(outcome, actions))),
  );
}

function openOutcome(outcome, actions) {
  const marks = [
    say(outcome.read_at ? "page_read" : "page_unread"),
    outcome.reminded_at && say("page_reminded"),
    outcome.session && `${say("page_session")} ${outcome.session}`,
    clock(outcome.told_at),
  ];
  return make(
    "li",
    { "data-outcome": outcome.outcome },
    make("div", {}, make("p", {}, outcome.line ?? outcome.label), small(marks)),
    make(
      "button",
      {
        type: "button",
        id: `ack-${outcome.watch_id}-${outcome.waiter}`,
        "aria-label": `${say("page_ack")}: ${outcome.label}`,
        click: () => actions.acknowledge(outcome),
      },
      say("page_ack"),
    ),
  );
}

/** Return the list of what ended within a day; an expired wait may be renewed. */
export function endedWatches(actions) {
  return new List("page_no_ended", (watches) =>
    make("ul", { class: "rows" }, ...watches.map((watch) => endedWatch(watch, actions))),
  );
}

function endedWatch(watch, actions) {
  const marks = [watch.target, watch.host, clock(watch.ended_at)];
  const renew = make(
    "button",
    {
      type: "button",
      id: `renew-${watch.id}`,
      "aria-label": say("page_renew_title", { label: watch.label }),
      click: () => actions.renew(watch),
    },
    say("page_renew"),
  );
  return make(
    "li",
    { "data-outcome": watch.state },
    make("div", {}, make("p", {}, watch.line ?? watch.label), small(marks)),
    watch.state === "expired" ? renew : null,
  );
}

/** Return the list of pings, those that are not delivered first. */
export function pings() {
  return new List("page_no_pings", (all) => {
    const heads = ["page_state", "page_channel", "page_message", "page_attempts"].map((key) => say(key));
    return table(heads, all.map(ping));
  });
}

function ping(one) {
  const when = one.next_attempt_at
    ? say("page_next", { time: clock(one.next_attempt_at) })
    : clock(one.delivered_at ?? one.created_at);
  const state = make("span", { class: "badge", "data-ping": one.state }, say(`ping_${one.state}`));
  const message = make("div", {}, make("p", {}, one.message), small([when, one.last_error]));
  return [state, one.channel, message, String(one.attempts)];
}

/** Return the list of hosts. */
export function hosts() {
  return new List("page_no_hosts", (all) => make("ul", { class: "rows" }, ...all.map(host)));
}

/** Return how a host answers, in words. */
export function healthOf(one) {
  if (one.silent_since) return say("page_silent", { time: clock(one.silent_since) });
  return say(one.reached_at ? "page_answers" : "page_not_reached");
}

function host(one) {
  const kind = one.reached_at && !one.silent_since ? "released" : "unknown";
  const marks = [
    one.means && `${say("page_means")} ${one.means}`,
    one.reached_at && `${say("page_last")} ${clock(one.reached_at)}`,
    one.last_error,
    `${say("page_waits")}: ${one.armed}`,
  ];
  return make(
    "li",
    { "data-host": one.name },
    make("div", {}, make("p", {}, make("strong", {}, one.name)), small(marks)),
    make("span", { class: "badge", "data-seen": kind }, healthOf(one)),
  );
}

function small(parts) {
  return make("p", { class: "small" }, parts.filter(Boolean).join(" · "));
}
