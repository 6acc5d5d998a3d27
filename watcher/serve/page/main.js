// Puts the page together and keeps it new: events say that something happened, what is
// shown is always asked for. What was missed while there was no connection is there
// again as soon as there is one.

import { Actions } from "./actions.js";
import { make, tell } from "./build.js";
import { History } from "./history.js";
import { endedWatches, hosts, openOutcomes, pings } from "./lists.js";
import { Over, ask, setClock } from "./service.js";
import { Waits } from "./waits.js";
import { learn, say } from "./words.js";

const NAMES = ["armed", "renewed", "released", "ended", "expired", "removed", "unseen", "ping", "reset"];
const NO_PAST = ["armed", "renewed"]; // events that change nothing in the history
const GATHER_MS = 150; // what comes together is asked for once
const LOOK_MS = 10_000; // what no event tells: looks, and hosts that fall silent
const HISTORY_MS = 60_000;
const TRY_MS = [500, 1000, 2000, 5000];

class Page {
  constructor() {
    const actions = new Actions(
      (text) => {
        tell(this.said, text);
        this.refresh();
      },
      (error) => this.failed(error),
    );
    this.state = make("p", { id: "state", role: "status" }, say("page_connecting"));
    this.said = make("p", { id: "said", role: "status" });
    this.health = make("p", { id: "health", role: "alert" });
    this.waits = new Waits(actions);
    this.open = openOutcomes(actions);
    this.ended = endedWatches(actions);
    this.pings = pings();
    this.hosts = hosts();
    this.history = new History();
    this.failures = 0;
    this.past = true; // there is something new in the history
    this.over = false;
  }

  build() {
    const sections = [
      ["waits", "page_waits", this.waits.element],
      [
        "outcomes",
        "page_outcomes",
        make("h3", {}, say("page_open_outcomes")),
        this.open.element,
        make("h3", {}, say("page_ended")),
        this.ended.element,
      ],
      ["pings", "page_pings", this.pings.element],
      ["hosts", "page_hosts", this.hosts.element],
      ["history", "page_history", this.history.element],
    ];
    this.main = make(
      "main",
      { id: "content", tabindex: -1 },
      ...sections.map(([id, key, ...inside]) =>
        make("section", { id, "aria-labelledby": `${id}-head` }, make("h2", { id: `${id}-head` }, say(key)), ...inside),
      ),
    );
    document.body.replaceChildren(
      make("a", { class: "skip", href: "#content" }, say("page_skip")),
      make(
        "header",
        { class: "top" },
        make("h1", {}, "koder-monitor"),
        this.state,
        make("nav", {}, ...sections.map(([id, key]) => make("a", { href: `#${id}` }, say(key)))),
      ),
      this.health,
      this.said,
      this.main,
    );
    setInterval(() => this.waits.tick(), 500);
    setInterval(() => document.hidden || this.refresh(), LOOK_MS);
    setInterval(() => (this.past = true), HISTORY_MS);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  /** Look at everything once more, soon; as often as that is asked for meanwhile. */
  refresh() {
    if (this.over || this.timer) return;
    this.timer = setTimeout(async () => {
      try {
        await this.look();
      } catch (error) {
        this.failed(error);
      }
      this.timer = null;
      if (this.again) {
        this.again = false;
        this.refresh();
      }
    }, GATHER_MS);
  }

  async look() {
    const [health, watches, outcomes, sent, machines] = await Promise.all(
      ["/healthz", "/v1/watches?all=1", "/v1/outcomes", "/v1/pings", "/v1/hosts"].map((path) => ask(path)),
    );
    setClock(health.now);
    tell(this.health, health.detail ? say("page_degraded", { detail: health.detail }) : "");
    const armed = watches.filter((watch) => watch.state === "armed");
    this.waits.show(armed, machines);
    this.open.show(outcomes);
    this.ended.show(watches.filter((watch) => watch.state !== "armed").reverse());
    this.pings.show(sent.reverse());
    this.hosts.show(machines);
    document.title = armed.length ? `(${armed.length}) koder-monitor` : "koder-monitor";
    if (this.past) {
      this.past = false;
      await this.history.load();
    }
  }

  /** Have whatever happens told, and look at what happened before. */
  listen() {
    this.events = new EventSource("/v1/events");
    this.events.addEventListener("open", () => {
      this.failures = 0;
      this.past = true;
      this.connected("live");
      this.refresh();
    });
    for (const name of NAMES) {
      this.events.addEventListener(name, () => {
        this.past ||= !NO_PAST.includes(name);
        this.again = Boolean(this.timer);
        this.refresh();
      });
    }
    this.events.addEventListener("error", () => this.lost());
  }

  /** Try to get back, for as long as it takes; a session that is over ends that. */
  lost() {
    this.events?.close();
    if (this.over) return;
    this.connected("lost");
    const pause_ms = TRY_MS[Math.min(this.failures, TRY_MS.length - 1)];
    this.failures += 1;
    clearTimeout(this.trying);
    this.trying = setTimeout(async () => {
      try {
        await ask("/healthz");
        this.listen();
      } catch (error) {
        if (error instanceof Over) {
          this.failed(error);
        } else {
          this.lost();
        }
      }
    }, pause_ms);
  }

  failed(error) {
    if (error instanceof Over) {
      this.over = true;
      this.events?.close();
      this.connected("over");
      for (const button of this.main.querySelectorAll("button")) {
        button.disabled = true;
      }
    } else if (error instanceof TypeError || error.name === "TimeoutError") {
      return; // not reached: the events tell that, and come back by themselves
    } else {
      tell(this.said, say("page_failed", { detail: error.message }));
    }
  }

  connected(how) {
    this.state.dataset.how = how;
    document.body.dataset.how = how;
    tell(this.state, say(`page_${how}`));
  }
}

try {
  learn(await ask("/v1/words"));
  const page = new Page();
  page.build();
  page.listen();
} catch (error) {
  document.body.replaceChildren(make("p", { role: "alert" }, error.message));
}
