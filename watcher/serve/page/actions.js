// Renew, remove, acknowledge: what a person does, with the reason that is asked for.

import { make, tell } from "./build.js";
import { Over, ask, pathOf } from "./service.js";
import { say } from "./words.js";

const TTLS = ["15m", "30m", "1h", "2h", "4h", "8h", "1d"];
const USUAL = "1h";

/** Carries out what is asked for, says how it went, and has everything looked at anew. */
export class Actions {
  /**
   * @param told is called with a sentence when something was done.
   * @param failed is called with an error that no dialog can show.
   */
  constructor(told, failed) {
    this.told = told;
    this.failed = failed;
  }

  renew(watch) {
    const ttl = make(
      "select",
      { id: "ttl" },
      ...TTLS.map((text) => make("option", { value: secondsOf(text), selected: text === USUAL }, text)),
    );
    this.open(watch, {
      title: "page_renew_title",
      word: "page_renew",
      reason: "page_why_renew",
      fields: [make("label", { for: "ttl" }, say("page_ttl")), ttl],
      act: (why) =>
        ask(pathOf(watch.id, "/renew"), {
          method: "POST",
          body: { ttl_s: Number(ttl.value), why: why || null },
        }),
      done: "page_done_renew",
    });
  }

  remove(watch) {
    this.open(watch, {
      title: "page_remove_title",
      word: "page_remove",
      reason: "page_why_remove",
      needed: true,
      fields: [],
      act: (why) => ask(pathOf(watch.id), { method: "DELETE", body: { why } }),
      done: "page_done_remove",
    });
  }

  async acknowledge(outcome) {
    try {
      await ask(pathOf(outcome.watch_id, "/ack"), { method: "POST" });
      this.told(say("page_done_ack", { label: outcome.label }));
    } catch (error) {
      this.failed(error);
    }
  }

  /** Ask for the reason in a dialog; it stays open as long as that does not work. */
  open(watch, { title, word, reason, needed = false, fields, act, done }) {
    const why = make("input", { id: "why", type: "text", required: needed, maxlength: 300, autocomplete: "off" });
    const wrong = make("p", { role: "alert", class: "wrong" });
    const go = make("button", { type: "submit", class: needed ? "grave" : "" }, say(word));
    const send = async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        await act(why.value.trim());
        dialog.close();
        this.told(say(done, { label: watch.label }));
      } catch (error) {
        if (error instanceof Over) {
          dialog.close();
          this.failed(error);
        }
        tell(wrong, error.message);
        go.disabled = false;
        why.focus();
      }
    };
    const dialog = make(
      "dialog",
      { "aria-labelledby": "asked", close: () => dialog.remove() },
      make(
        "form",
        { submit: send },
        make("h2", { id: "asked" }, say(title, { label: watch.label })),
        make("p", { class: "small" }, watch.target),
        make("label", { for: "why" }, say(reason)),
        why,
        ...fields,
        wrong,
        make(
          "div",
          { class: "choices" },
          go,
          make("button", { type: "button", click: () => dialog.close() }, say("page_cancel")),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
    why.focus();
  }
}

function secondsOf(text) {
  return Number.parseInt(text, 10) * { m: 60, h: 3600, d: 86400 }[text.at(-1)];
}
