// Asks the service. Nothing here shows anything.

/** What the service answered instead of what was asked for. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** The session of this page is over; only a new address opens it again. */
export class Over extends Problem {}

let ahead_ms = 0; // of our clock, that of the service

/** Return the time by the clock of the service, in milliseconds. */
export function now() {
  return Date.now() + ahead_ms;
}

/** Take the time that the service says it is. */
export function setClock(text) {
  ahead_ms = new Date(text).getTime() - Date.now();
}

/** Return what the service answers; null for nothing. */
export async function ask(path, { method = "GET", body = null } = {}) {
  const writes = method !== "GET";
  const answer = await fetch(path, {
    method,
    headers: writes ? { "Content-Type": "application/json" } : {},
    body: writes ? JSON.stringify(body ?? {}) : undefined,
    credentials: "same-origin",
    signal: AbortSignal.timeout(30_000),
  });
  if (answer.ok) {
    return answer.status === 204 ? null : answer.json();
  }
  const said = await answer.json().catch(() => ({}));
  const Kind = answer.status === 401 ? Over : Problem;
  throw new Kind(answer.status, said.detail ?? `HTTP ${answer.status}`);
}

/** Return the path of a watch. */
export function pathOf(id, more = "") {
  return `/v1/watches/${encodeURIComponent(id)}${more}`;
}
