-- Keys that have been pending for long, the longest first.
--
-- KEYS: 1 pending  sorted set of keys by when they were claimed
-- ARGV: 1 for how long at least, ms, 2 how many at most
-- Answers the names of their entries
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[2])
