-- The first schema. Instants are seconds since the epoch (UTC) unless they end in
-- boot_s: seconds since the boot that boot_id names, suspend included.

CREATE TABLE watches (
    id            TEXT PRIMARY KEY,
    target        TEXT NOT NULL,
    kind          TEXT NOT NULL,
    label         TEXT NOT NULL,
    host          TEXT,
    state         TEXT NOT NULL DEFAULT 'armed' CHECK (
        state IN ('armed', 'released', 'ended', 'expired', 'removed', 'unseen')
    ),
    observation   TEXT NOT NULL DEFAULT 'unknown' CHECK (
        observation IN ('held', 'released', 'unknown')
    ),
    result        TEXT,
    armed_at      REAL NOT NULL,
    deadline_at   REAL NOT NULL, -- of the waiter that waits longest
    ended_at      REAL,
    last_probe_at REAL,
    looks         INTEGER NOT NULL DEFAULT 0,
    unknown_s     REAL NOT NULL DEFAULT 0,
    every_s       INTEGER NOT NULL,
    ttl_s         INTEGER NOT NULL,
    start_within_s INTEGER NOT NULL DEFAULT 0,
    renewals      INTEGER NOT NULL DEFAULT 0,
    memory        TEXT NOT NULL DEFAULT '{}', -- what the condition remembers
    evidence      TEXT NOT NULL DEFAULT '{}',
    line          TEXT,
    assessment    TEXT, -- the last one: evidence and progress, for the next to compare
    idle_renewals INTEGER NOT NULL DEFAULT 0, -- renewals in a row without progress
    token         INTEGER NOT NULL -- fencing token of the owner
) STRICT;

-- One per condition (C5.2).
CREATE UNIQUE INDEX watches_armed ON watches (target) WHERE state = 'armed';
CREATE INDEX watches_ended ON watches (ended_at);

CREATE TABLE waiters (
    watch_id        TEXT NOT NULL REFERENCES watches (id),
    number          INTEGER NOT NULL, -- in the order they came
    label           TEXT NOT NULL,
    resume          TEXT,
    session         TEXT,
    lang            TEXT NOT NULL,
    ttl_s           INTEGER NOT NULL,
    armed_at        REAL NOT NULL,
    deadline_at     REAL NOT NULL,
    deadline_boot_s REAL NOT NULL,
    boot_id         TEXT NOT NULL,
    takes           INTEGER NOT NULL DEFAULT 0, -- wants the lock itself (C5.5)
    nonce           TEXT, -- drawn by the command: asking twice arms once
    state           TEXT NOT NULL DEFAULT 'waiting' CHECK (
        state IN ('waiting', 'told', 'left')
    ),
    outcome         TEXT, -- how it ended for this waiter
    acknowledged_at REAL,
    PRIMARY KEY (watch_id, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX waiters_nonce ON waiters (nonce) WHERE nonce IS NOT NULL;

CREATE TABLE pings (
    id            INTEGER PRIMARY KEY,
    channel       TEXT NOT NULL,
    key           TEXT NOT NULL,
    watch_id      TEXT,
    body          TEXT NOT NULL, -- the whole ping
    state         TEXT NOT NULL DEFAULT 'pending' CHECK (
        state IN ('pending', 'delivered', 'dead')
    ),
    attempts      INTEGER NOT NULL DEFAULT 0,
    created_at    REAL NOT NULL,
    due_at        REAL NOT NULL,
    give_up_at    REAL NOT NULL,
    claim         TEXT, -- who is sending it
    claimed_until REAL NOT NULL DEFAULT 0,
    delivered_at  REAL,
    logged_at     REAL, -- in the fallback log
    last_error    TEXT,
    UNIQUE (channel, key)
) STRICT;

CREATE INDEX pings_due ON pings (due_at) WHERE state = 'pending';
CREATE INDEX pings_watch ON pings (watch_id);

-- What was done to a watch, for show and history.
CREATE TABLE trail (
    id       INTEGER PRIMARY KEY,
    watch_id TEXT NOT NULL,
    at       REAL NOT NULL,
    event    TEXT NOT NULL, -- joined, left, renewed, removed, expired, circle ...
    detail   TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE INDEX trail_watch ON trail (watch_id);

CREATE TABLE jobs (
    id             TEXT PRIMARY KEY,
    label          TEXT NOT NULL,
    state          TEXT NOT NULL DEFAULT 'running' CHECK (
        state IN ('running', 'done', 'failed')
    ),
    started_at     REAL NOT NULL,
    ended_at       REAL,
    notify_after_s INTEGER,
    notified_at    REAL, -- the ping that it still runs is in the outbox
    session        TEXT
) STRICT;

CREATE INDEX jobs_running ON jobs (started_at) WHERE state = 'running';

-- One row: the fencing token of whoever owns the watches of this file.
CREATE TABLE owner (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    token INTEGER NOT NULL
) STRICT;

INSERT INTO owner (id, token) VALUES (1, 0);
