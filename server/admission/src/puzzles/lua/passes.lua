-- Whether a visitor passes: they solved a puzzle of this show a while ago.
--
-- KEYS: 1 passed  string: there while they are asked for no other
-- Answers 1 when they do, 0 when not
return redis.call('EXISTS', KEYS[1])
