-- Unread outcomes, the second ping, and waking a session (C9.4).
ALTER TABLE waiters ADD COLUMN project TEXT; -- folder in which it was armed
ALTER TABLE waiters ADD COLUMN told_at REAL;
ALTER TABLE waiters ADD COLUMN read_at REAL; -- handed to the session, once
ALTER TABLE waiters ADD COLUMN reminded_at REAL; -- the second ping is in the outbox
ALTER TABLE waiters ADD COLUMN woken_at REAL; -- the command that wakes it was started

UPDATE waiters SET told_at = coalesce(
    (SELECT ended_at FROM watches WHERE id = watch_id), armed_at
) WHERE state = 'told';

-- What older versions told is history: nobody is reminded of it.
UPDATE waiters SET reminded_at = told_at WHERE state = 'told';

CREATE INDEX waiters_unread ON waiters (session)
WHERE state = 'told' AND acknowledged_at IS NULL;

-- Detached watchers: what stays on a host when this machine is off (C7.3).

-- One row a watch that was ever detached; while gone_at is NULL its host holds something
-- of it, which is stopped there once its outcome is here and its ping delivered.
CREATE TABLE detached (
    watch_id   TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    gone_at    REAL
) STRICT;

CREATE INDEX detached_there ON detached (watch_id) WHERE gone_at IS NULL;

-- One row: what tells this state directory from another on a host.
CREATE TABLE laptop (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL
) STRICT;

INSERT INTO laptop (id, name) VALUES (1, lower(hex(randomblob(6))));
