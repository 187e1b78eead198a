-- Takes what a server gave out from a bucket that fills by itself. It is given out already, so it is taken whether there
-- is as much or not; whoever goes on and on owes one whole bucket at most.
--
-- KEYS: 1 bucket  string: when it will be full again, ms; none: it is full
-- ARGV: 1 how much it holds, 2 how long each takes to come back, ms, 3 how many were given out
-- Answers for how many ms it is empty; 0: it is not
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local whole = ARGV[1] * ARGV[2]
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now)) + ARGV[3] * ARGV[2]
full_at = math.min(full_at, now + 2 * whole)
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', string.format('%.0f', full_at - now))
return math.max(0, full_at - now - whole)
