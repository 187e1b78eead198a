-- An older hold may add a seat that was sold and returned since: a released claim no longer refuses its lower fence.

COMMENT ON COLUMN seat_claims.fence IS
    'Fencing token of the hold; a claim replaces an expired one with a lower fence only, a released one in any case.';
