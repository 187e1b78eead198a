-- A rehearsal loads and measures the whole deployment, so one runs at a time. It gives way to an on-sale.

-- Fails while two rehearsals run; they end within 20 minutes.
CREATE UNIQUE INDEX rehearsals_one_running ON rehearsals ((true)) WHERE ended_at IS NULL;
DROP INDEX rehearsals_one_per_theatre;

ALTER TABLE rehearsals DROP CONSTRAINT rehearsals_end_reason_check;
ALTER TABLE rehearsals ADD CONSTRAINT rehearsals_end_reason_check
    CHECK (end_reason IN ('sold_out', 'all_served', 'stopped', 'out_of_time', 'gave_way', 'interrupted'));
