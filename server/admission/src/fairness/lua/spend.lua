-- Takes a lot that a replica has granted already from a token bucket. The lot is therefore taken even if the bucket has
-- too few tokens; the debt of a caller is limited to one whole bucket.
--
-- KEYS: 1 bucket  string: when it will be full again, ms; none: it is full
-- ARGV: 1 its size in tokens, 2 ms to refill one token, 3 tokens to take
-- Answers for how many ms it is empty; 0: it is not
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local whole = ARGV[1] * ARGV[2]
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now)) + ARGV[3] * ARGV[2]
full_at = math.min(full_at, now + 2 * whole)
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', string.format('%.0f', full_at - now))
return math.max(0, full_at - now - whole)
