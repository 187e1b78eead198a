-- A gateway that refuses our request declines no card: the buyer need not wait, and the hold continues all the same.

ALTER TABLE declined_payments ADD COLUMN by_gateway boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN declined_payments.by_gateway IS
    'The gateway refused the request itself, whatever the card: not counted against the buyer.';
