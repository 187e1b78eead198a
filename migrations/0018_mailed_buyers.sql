-- The buyer's mail is sent before that of their friend. If only the friend's fails, retries do not mail the buyer again.

ALTER TABLE outbox ADD COLUMN is_buyer_mailed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN outbox.is_buyer_mailed IS
    'Of send_ticket: the buyer''s mail was handed over, and only that of their friend is missing.';
