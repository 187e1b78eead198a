-- Checks if a number was given back or its pass has ended.
--
-- KEYS: as join.lua
-- ARGV: 1 number
-- Answers {1, 1 if so, else 0}
return {1, redis.call('GETBIT', KEYS[2], ARGV[1])}
