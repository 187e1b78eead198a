-- Builds the room from what Postgres knows, unless somebody was faster. Numbers that may have been given out are
-- not given out again.
--
-- KEYS: as join.lua
-- ARGV: 1 first number that is certainly free, 2 how many were drawn; -1: not written down, 3 places called,
--       4 people who were inside, 5 how long they still may be, ms, 6 no number below this is free,
--       7 numbers that are nobody's (gaps), 8 how many those are
-- Answers {1, 1 if it was built, 0 if somebody was faster}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'called')
if known[1] and tonumber(known[1]) >= tonumber(ARGV[6]) then
  return {1, 0}
end
local called = math.max(tonumber(known[2] or 0), tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'next', ARGV[1], 'called', called, 'credit', 0, 'at', now,
  'ghosts', ARGV[4], 'ghosts_until', now + tonumber(ARGV[5]),
  'gaps', ARGV[7], 'gone', ARGV[8])
if tonumber(ARGV[2]) >= 0 then
  redis.call('HSET', KEYS[1], 'drawn', ARGV[2])
end
return {1, 1}
