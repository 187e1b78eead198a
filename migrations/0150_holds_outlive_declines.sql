-- A declined payment ends its booking and not the hold, which is renewed under another id, for another card.

ALTER TABLE declined_payments
    -- Which decline of the hold it was, counted from the first.
    ADD COLUMN number     smallint NOT NULL DEFAULT 1 CHECK (number >= 1),
    -- The hold's next id, and until when it lasts; none where the hold ended.
    ADD COLUMN kept_as    uuid UNIQUE,
    ADD COLUMN kept_until timestamptz,
    ADD CONSTRAINT declined_payments_kept_until CHECK ((kept_as IS NULL) = (kept_until IS NULL));
