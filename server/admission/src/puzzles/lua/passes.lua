-- Checks if a visitor is exempt because of an earlier solution for this show.
--
-- KEYS: 1 passed  string: exists while they are exempt
-- Answers 1 if they are, else 0
return redis.call('EXISTS', KEYS[1])
