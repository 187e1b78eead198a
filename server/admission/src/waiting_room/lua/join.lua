-- Gives out numbers to people who come, in the order they come.
--
-- KEYS: 1 room      hash: next (number to give out), drawn (next at opening), called, credit, at, gone, ghosts,
--                       ghosts_until, gaps (numbers that are nobody's, or nearly: from-to,from-to)
--       2 left      bitmap by number: left, or used up
--       3 inside    sorted set, number by the end of its time inside, ms
--       4 entered   hash, number -> owner who went in : on how many devices
--       5 lately    hash, tenth of a minute -> people let in
--       6 present   bitmap by number: its holder has sent a request since joining
-- ARGV: 1 how many people, 2 no number below this is free, 3 no number from this on may be given out yet,
--       4 when the room opens, ms, 5 how many may wait at once, 6 how many numbers there are in all
-- Answers {1, first number, how many, 1 if the room is full} or {0}: the room is not here, or older than what was seen
--   of it
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'drawn', 'called', 'gone')
local first = tonumber(known[1])
if not first or first < tonumber(ARGV[2]) then
  return {0}
end
-- Whoever comes from here on comes after opening.
if not known[2] and now >= tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[1], 'drawn', first)
end
-- Those who were called or have left wait no more: a full room takes others as soon as one of them goes.
local waiting = first - tonumber(known[3] or 0) - tonumber(known[4] or 0)
local space = math.max(0, math.min(tonumber(ARGV[5]) - waiting, tonumber(ARGV[6]) - first))
local count = math.max(0, math.min(tonumber(ARGV[1]), tonumber(ARGV[3]) - first, space))
if count > 0 then
  redis.call('HINCRBY', KEYS[1], 'next', count)
end
return {1, first, count, space == 0 and 1 or 0}
