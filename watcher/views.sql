-- The watches whose rowid is in `chosen`, each with what its waiters add: the session and
-- activity of the first, of those that still wait where any does; how many there are
-- (those that still wait; once it has ended, those that were told); how many outcomes
-- nobody acknowledged. `holder` is who held a lock when it was last seen held, `sound`
-- whether the evidence is a JSON object: what a row holds may be damaged.
-- The columns are the fields of `views.Watch`, in their order.
SELECT
    id,
    target,
    kind,
    watches.label,
    host,
    watches.state,
    observation,
    result,
    watches.armed_at,
    watches.deadline_at,
    ended_at,
    last_probe_at,
    looks,
    unknown_s,
    every_s,
    watches.ttl_s,
    renewals,
    first.session,
    first.resume,
    (
        SELECT count(*) FROM waiters
        WHERE watch_id = watches.id
        AND state = iif(watches.state = 'armed', 'waiting', 'told')
    ) AS waiters,
    iif(watches.state = 'armed', 0, (
        SELECT count(*) FROM waiters
        WHERE watch_id = watches.id AND state = 'told' AND acknowledged_at IS NULL
    )) AS unread,
    CASE iif(json_valid(memory), json_type(memory, '$.holder'), '')
        WHEN 'object' THEN json_extract(memory, '$.holder')
    END AS holder,
    evidence,
    iif(json_valid(evidence), json_type(evidence) = 'object', 0) AS sound,
    line,
    EXISTS (SELECT 1 FROM detached WHERE watch_id = watches.id) AS detached
FROM watches
LEFT JOIN waiters AS first ON first.watch_id = watches.id AND first.number = coalesce(
    (SELECT min(number) FROM waiters WHERE watch_id = watches.id AND state = 'waiting'),
    (SELECT min(number) FROM waiters WHERE watch_id = watches.id AND state = 'told'),
    1
)
WHERE watches.rowid IN chosen
ORDER BY ended_at IS NULL, ended_at, watches.armed_at, id
