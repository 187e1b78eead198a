-- Takes from a bucket that fills by itself, or says when there will be something in it again.
--
-- KEYS: 1 bucket  string: when it will be full again, ms; none: it is full
-- ARGV: 1 how much it holds, 2 how long each takes to come back, ms,
--       3 what to do: take, give (back what was taken), clear (fill it at once),
--       4 how many must be left after a take; the others are reserved
-- Answers {1 if there was something, how many are left, ms until there will be something};
--   {2, how many are left, 0} when only reserved ones are left, and nothing was taken
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
