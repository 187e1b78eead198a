-- What managers are shown as unusual in a show, and what they think of it. Nobody is refused anything because of a row.
-- Of whom it is stands here as a keyed digest only: it tells one visitor or address of a theatre from another, and
-- leads nowhere.
CREATE TABLE unusual_flags (
    id           uuid PRIMARY KEY,
    show_id      uuid NOT NULL REFERENCES shows ON DELETE CASCADE,
    theatre_id   text NOT NULL REFERENCES theatres,
    kind         text NOT NULL CHECK (kind IN ('never_bought', 'many_visitors', 'timing', 'puzzles')),
    subject      text NOT NULL CHECK (subject IN ('visitor', 'address')),
    tag          text NOT NULL CHECK (tag ~ '^[0-9a-f]{16}$'),
    seen         bigint NOT NULL CHECK (seen > 0),   -- holds, visitors, tries or puzzles, by kind
    since        timestamptz NOT NULL,
    last_at      timestamptz NOT NULL,
    dismissed_at timestamptz,                        -- a manager put it aside; what comes after counts on, unseen
    dismissed_by uuid REFERENCES accounts,
    reason       text,
    UNIQUE (show_id, kind, subject, tag),
    CHECK ((dismissed_at IS NULL) = (dismissed_by IS NULL) AND (dismissed_at IS NULL) = (reason IS NULL))
);
CREATE INDEX unusual_flags_by_theatre ON unusual_flags (theatre_id, last_at);
CREATE INDEX unusual_flags_by_age ON unusual_flags (last_at);
