-- Takes a token from a bucket that refills over time.
--
-- KEYS: 1 bucket  string: the time at which it is full again, ms; no key: it is full
-- ARGV: 1 capacity, 2 refill time of a token, ms,
--       3 operation: take, give (returns a token), clear (refills the bucket),
--       4 tokens that a take must leave in the bucket: the reserve
-- Returns {1 if granted, 0 if empty; tokens left; ms until the next token};
--   {2, tokens left, 0} when only the reserve is left and nothing was taken
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local burst, each = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now))

if ARGV[3] == 'clear' then
  redis.call('DEL', KEYS[1])
  return {1, burst, 0}
end
if ARGV[3] == 'give' then
  full_at = full_at - each
else
  full_at = full_at + each
end
local lacks = full_at - now
if lacks > burst * each then
  return {0, 0, lacks - burst * each}
end
local left = math.floor((burst * each - math.max(0, lacks)) / each)
if ARGV[3] == 'take' and left < tonumber(ARGV[4]) then
  return {2, left + 1, 0}
end
if lacks > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', lacks)
else
  redis.call('DEL', KEYS[1])
end
return {1, left, 0}
