-- Builds the room from Postgres, unless another replica has built it. Numbers that may have been given out are
-- not given out again. Data that survived a loss of the last writes stays.
--
-- KEYS: as join.lua
-- ARGV: 1 first number that is certainly free, 2 how many were drawn; -1: not recorded, 3 places called,
--       4 people who were inside, 5 how long they still may be, ms, 6 no number below this is free,
--       7 gaps of earlier losses, 8 how many numbers they have,
--       9 the last number that was seen to be free
-- Answers {1, 1 if it was built, 0 if another replica had, start of the new gap, which ends at the first number}
local MOST_GAPS = 64 -- beyond, places of lost numbers take room until their calls end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'called', 'gaps', 'gone')
local first, next = tonumber(ARGV[1]), tonumber(known[1])
if next and next >= tonumber(ARGV[6]) then
  return {1, 0, first}
end
local called = math.max(tonumber(known[2] or 0), tonumber(ARGV[3]))
local gaps, gone = known[3] or ARGV[7], tonumber(known[4] or ARGV[8])
local lost = math.max(next or 0, tonumber(ARGV[9]))
local _, count = string.gsub(gaps, '-', '')
if lost < first and count < MOST_GAPS then
  gaps = (gaps == '' and '' or gaps .. ',') .. string.format('%d-%d', lost, first)
  gone = gone + first - lost
else
  lost = first
end
-- Those still known to be inside are counted there.
local ghosts = math.max(0, tonumber(ARGV[4]) - redis.call('ZCARD', KEYS[3]))
redis.call('HSET', KEYS[1], 'next', first, 'called', called, 'credit', 0, 'at', now,
  'ghosts', ghosts, 'ghosts_until', now + tonumber(ARGV[5]), 'gaps', gaps, 'gone', gone)
if tonumber(ARGV[2]) >= 0 then
  redis.call('HSET', KEYS[1], 'drawn', ARGV[2])
end
return {1, 1, lost}
