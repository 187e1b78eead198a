-- Whether a number was given back, or its time inside is over.
--
-- KEYS: as join.lua
-- ARGV: 1 number
-- Answers {1, 1 if so, else 0}
return {1, redis.call('GETBIT', KEYS[2], ARGV[1])}
