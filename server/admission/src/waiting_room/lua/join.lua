-- Gives out numbers in the order of requests.
--
-- KEYS: 1 room      hash: next (number to give out), drawn (next at opening), called, credit, at, gone, ghosts,
--                       ghosts_until, gaps (numbers of lost blocks, with hardly any holders: from-to,from-to)
--       2 left      bitmap by number: left, or used up
--       3 inside    sorted set, number by the end of its pass or call, ms
--       4 entered   hash, number -> owner who entered : number of devices
--       5 lately    hash, tenth of a minute -> people let in
--       6 present   bitmap by number: its holder has sent a request since joining
-- ARGV: 1 numbers wanted, 2 no number below this is free, 3 no number from this on may be given out yet,
--       4 when the room opens, ms, 5 maximum of people who wait, 6 numbers there are in all
-- Answers {1, first number, how many, 1 if the room is full} or {0}: the room is missing, or older than the caller
--   has seen
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'drawn', 'called', 'gone')
local first = tonumber(known[1])
if not first or first < tonumber(ARGV[2]) then
  return {0}
end
-- Numbers from here on are given out after the opening.
if not known[2] and now >= tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[1], 'drawn', first)
end
-- People who were called or left do not wait: a full room admits others as soon as one of them goes.
local waiting = first - tonumber(known[3] or 0) - tonumber(known[4] or 0)
local space = math.max(0, math.min(tonumber(ARGV[5]) - waiting, tonumber(ARGV[6]) - first))
local count = math.max(0, math.min(tonumber(ARGV[1]), tonumber(ARGV[3]) - first, space))
if count > 0 then
  redis.call('HINCRBY', KEYS[1], 'next', count)
end
return {1, first, count, space == 0 and 1 or 0}
