-- A gateway that a booking left is told never to charge it (0006, docs/decisions/0008).
ALTER TABLE outbox DROP CONSTRAINT outbox_effect_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_effect_check
    CHECK (effect IN ('charge', 'void_payment', 'void_left', 'refund', 'refund_part', 'mark_booked', 'release_seats',
                      'release_part', 'send_ticket', 'send_notice', 'place_late'));
