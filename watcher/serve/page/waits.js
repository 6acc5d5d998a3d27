// What is waited for: a card each, kept as long as its watch, so that nobody loses his
// place in it when something changes.

import { arrange, make, tell } from "./build.js";
import { healthOf } from "./lists.js";
import { ask, now, pathOf } from "./service.js";
import { clock, countdown, say, span } from "./words.js";

const MOST = 200; // cards; who has more uses the filter

/** The cards of everything that is armed. */
export class Waits {
  constructor(actions) {
    this.actions = actions;
    this.cards = new Map();
    this.watches = [];
    this.hosts = [];
    this.filter = make("input", {
      type: "search",
      placeholder: say("page_filter"),
      "aria-label": say("page_filter"),
      input: () => this.show(this.watches, this.hosts),
    });
    this.list = make("ul", { class: "cards" });
    this.note = make("p", { class: "empty" });
    this.element = make("div", {}, this.filter, this.list, this.note);
  }

  show(watches, hosts) {
    this.watches = watches;
    this.hosts = hosts;
    const byName = new Map(hosts.map((host) => [host.name, host]));
    const text = this.filter.value.trim().toLowerCase();
    const wanted = watches
      .filter((watch) => matches(watch, text))
      .sort((one, other) => one.deadline.localeCompare(other.deadline) || one.id.localeCompare(other.id));
    const shown = wanted.slice(0, MOST);
    const kept = new Map();
    for (const watch of shown) {
      const card = this.cards.get(watch.id) ?? new Card(this.actions);
      card.show(watch, byName.get(watch.host));
      kept.set(watch.id, card);
    }
    this.cards = kept;
    arrange(this.list, [...kept.values()].map((card) => card.element));
    this.filter.hidden = watches.length < 2;
    tell(this.note, noteOf(watches.length, wanted.length));
  }

  /** Let time pass. */
  tick() {
    for (const card of this.cards.values()) {
      card.tick();
    }
  }
}

function noteOf(all, wanted) {
  if (!all) return say("page_no_waits");
  if (!wanted) return say("page_no_match");
  return wanted > MOST ? say("page_more", { count: wanted - MOST }) : "";
}

function matches(watch, text) {
  const where = [watch.label, watch.target, watch.host, watch.session, watch.holder?.session];
  return !text || where.some((one) => String(one ?? "").toLowerCase().includes(text));
}

class Card {
  constructor(actions) {
    this.title = make("h3");
    this.badge = make("span", { class: "badge" });
    this.target = make("code");
    this.bar = make("progress", { max: 1, value: 0 });
    this.left = make("span", { class: "left" });
    this.until = make("span", { class: "until" });
    this.facts = make("dl");
    this.inside = make("div");
    this.details = make(
      "details",
      { toggle: () => this.load() },
      make("summary", {}, say("page_details")),
      this.inside,
    );
    const renew = make("button", { type: "button", click: () => actions.renew(this.watch) }, say("page_renew"));
    const remove = make(
      "button",
      { type: "button", class: "grave", click: () => actions.remove(this.watch) },
      say("page_remove"),
    );
    this.buttons = [renew, remove];
    this.element = make(
      "li",
      { class: "card" },
      make("header", {}, this.title, this.badge),
      this.target,
      make("div", { class: "countdown" }, this.bar, make("p", {}, this.left, this.until)),
      this.facts,
      make("footer", {}, renew, remove),
      this.details,
    );
  }

  show(watch, host) {
    this.host = host;
    const changed = this.watch && JSON.stringify(this.watch) !== JSON.stringify(watch);
    this.watch = watch;
    this.element.dataset.id = watch.id;
    this.element.dataset.seen = watch.observation;
    tell(this.title, watch.label);
    this.title.title = watch.label;
    tell(this.badge, say(`state_seen_${watch.observation}`));
    this.badge.dataset.seen = watch.observation;
    tell(this.target, watch.target);
    tell(this.until, say("page_until", { time: clock(watch.deadline) }));
    this.bar.setAttribute("aria-label", say("page_until", { time: clock(watch.deadline) }));
    this.buttons[0].setAttribute("aria-label", say("page_renew_title", { label: watch.label }));
    this.buttons[1].setAttribute("aria-label", say("page_remove_title", { label: watch.label }));
    this.tick();
    if (changed && this.details.open) {
      this.load();
    }
  }

  tick() {
    const deadline = new Date(this.watch.deadline).getTime();
    const left_s = (deadline - now()) / 1000;
    const whole_s = Math.max(1, (deadline - new Date(this.watch.armed_at).getTime()) / 1000);
    this.bar.value = Math.min(1, Math.max(0, left_s / whole_s));
    this.element.dataset.soon = left_s < 60 || left_s < whole_s / 10;
    const text = left_s > 0 ? say("page_left", { span: countdown(left_s) }) : say("page_due");
    tell(this.left, text);
    this.tellFacts();
  }

  tellFacts() {
    const facts = factsOf(this.watch, this.host);
    if (this.facts.children.length !== facts.length * 2) {
      this.facts.replaceChildren(...facts.flatMap(() => [make("dt"), make("dd")]));
    }
    facts.forEach(([name, value, grave], n) => {
      tell(this.facts.children[2 * n], name);
      tell(this.facts.children[2 * n + 1], value);
      this.facts.children[2 * n + 1].className = grave ? "grave" : "";
    });
  }

  async load() {
    if (!this.details.open) return;
    try {
      this.inside.replaceChildren(...detailsOf(await ask(pathOf(this.watch.id))));
    } catch (error) {
      this.inside.replaceChildren(make("p", {}, say("page_failed", { detail: error.message })));
    }
  }
}

/** Return names and values; what is null is left out. */
function factsOf(watch, host) {
  const ago = (at) => say("page_ago", { span: span((now() - new Date(at).getTime()) / 1000) });
  return [
    ["page_holder", watch.holder && holderOf(watch.holder), watch.evidence.orphan],
    ["page_look", watch.last_probe_at ? ago(watch.last_probe_at) : say("page_never")],
    ["page_blind", watch.unknown_s >= 1 ? span(watch.unknown_s) : null, watch.observation === "unknown"],
    ["page_host", watch.host && hostOf(watch, host), host?.silent_since],
    ["page_last", host?.reached_at && clock(host.reached_at)],
    ["page_waiters", String(watch.waiters)],
    ["page_session", watch.session],
    ["page_resume", watch.resume],
    ["page_armed", ago(watch.armed_at)],
    ["page_renewals", watch.renewals ? String(watch.renewals) : null],
  ]
    .filter(([, value]) => value)
    .map(([key, value, grave]) => [
      say(key),
      key === "page_holder" && grave ? `${value} · ${say("page_orphan")}` : value,
      grave,
    ]);
}

function hostOf(watch, host) {
  const parts = [watch.host, host && healthOf(host), watch.detached && say("page_detached")];
  return parts.filter(Boolean).join(" · ");
}

function holderOf(holder) {
  const parts = [holder.session, holder.host, holder.pid && `PID ${holder.pid}`];
  if (holder.since) parts.push(say("page_since", { time: clock(holder.since) }));
  return parts.filter(Boolean).join(" · ") || "?";
}

function detailsOf(watch) {
  const evidence = Object.entries(watch.evidence).map(([name, value]) => [name, plain(value)]);
  const trail = watch.trail.map((step) => [clock(step.at), step.event, plain(step.detail)]);
  return [
    ...part("page_waiters", make("ol", { class: "waiters" }, ...watch.waiter_list.map(waiterOf))),
    ...part("page_evidence", evidence.length ? pairs(evidence) : null),
    ...part("page_trail", trail.length ? pairs(trail.map(([at, ...rest]) => [at, rest.join(" ")])) : null),
    make("p", { class: "id" }, watch.id),
  ];
}

function waiterOf(waiter) {
  const told = say(waiter.outcome ? `state_${waiter.outcome}` : `waiter_${waiter.state}`);
  const marks = [
    waiter.state === "waiting" ? `${told} ${say("page_until", { time: clock(waiter.deadline) })}` : told,
    waiter.takes && say("page_takes"),
    waiter.session && `${say("page_session")} ${waiter.session}`,
    waiter.resume && `${say("page_resume")} ${waiter.resume}`,
  ];
  const text = marks.filter(Boolean).join(" · ");
  return make("li", { value: waiter.number }, waiter.label, make("p", { class: "small" }, text));
}

function part(key, element) {
  return element ? [make("h4", {}, say(key)), element] : [];
}

function pairs(rows) {
  return make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function plain(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "object") return String(value);
  return Object.keys(value).length ? JSON.stringify(value) : "";
}
