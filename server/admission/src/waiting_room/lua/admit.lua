-- Ends passes that ran out, then calls the next places at the set rate while there is room inside. Any replica may
-- run it at any time; a place is called once, whichever replica calls it.
--
-- KEYS: as join.lua
-- ARGV: 1 when the room opens, ms, 2 no number below this is free, 3 how many were drawn; -1: not recorded yet,
--       4 people per second, 5 people inside at most, 6 time to enter after a call, ms, 7 the same for an unused
--       ticket, ms,
--       8 a place, 9… the numbers at this and the following places, as far as they were drawn
-- Answers {1, now ms, next, drawn or -1, called, gone, inside, let in within a minute} or {0}, as join.lua
local MOST_ENDED = 1000   -- passes and calls that end in one run
local MOST_CALLED = 1000  -- places called in one run
local KEPT_MS = 172800000 -- time to live of an unused room: two days
local TENTH_MS = 10000
local TENTHS = 6

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'drawn', 'called', 'credit', 'at', 'gone', 'ghosts', 'ghosts_until',
  'gaps')
local next = tonumber(known[1])
if not next or next < tonumber(ARGV[2]) then
  return {0}
end
local drawn = tonumber(known[2])
if not drawn and now >= tonumber(ARGV[1]) then
  drawn = next
  redis.call('HSET', KEYS[1], 'drawn', drawn)
end
local called, gone = tonumber(known[3] or 0), tonumber(known[6] or 0)
-- People who were inside when Redis lost the room.
local ghosts = tonumber(known[7] or 0)
if now >= tonumber(known[8] or 0) then
  ghosts = 0
end

local absent = 0
for _, number in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, MOST_ENDED)) do
  redis.call('ZREM', KEYS[3], number)
  -- A holder that has not entered may still come late; the ticket of one that did is used up.
  if redis.call('HDEL', KEYS[4], number) == 1 then
    redis.call('SETBIT', KEYS[2], number, 1)
  else
    absent = absent + 1
  end
end

-- Numbers of lost blocks have hardly any holders: they take no room, and a holder that does come enters late.
local gaps = {}
for from, to in string.gmatch(known[9] or '', '(%d+)-(%d+)') do
  gaps[#gaps + 1] = {tonumber(from), tonumber(to)}
end
local function is_nobodys(number)
  for _, gap in ipairs(gaps) do
    if number >= gap[1] and number < gap[2] then
      return true
    end
  end
  return false
end

local people = tonumber(ARGV[3])
local inside = redis.call('ZCARD', KEYS[3]) + ghosts
local tenth = math.floor(now / TENTH_MS)
if people >= 0 then
  local rate = tonumber(ARGV[4])
  -- In thousandths of a person. At most half a second is carried over, so that a pause is not followed by a burst.
  -- An unanswered call goes to the next place: the rate counts people, not tickets.
  local credit = tonumber(known[4] or 0) + math.max(0, now - tonumber(known[5] or now)) * rate + absent * 1000
  credit = math.min(credit, math.max(1000, rate * 500))
  local limit, from = tonumber(ARGV[5]), tonumber(ARGV[8])
  local steps, let_in = 0, 0
  while called < next and inside < limit and credit >= 1000 and steps < MOST_CALLED do
    local number = called
    if called < people then
      number = tonumber(ARGV[9 + called - from])
    end
    if not number or (called < people and called < from) then
      break
    end
    if is_nobodys(number) or redis.call('GETBIT', KEYS[2], number) == 1 then
      gone = math.max(0, gone - 1)
    else
      local is_present = redis.call('GETBIT', KEYS[6], number) == 1
      redis.call('ZADD', KEYS[3], now + tonumber(is_present and ARGV[6] or ARGV[7]), number)
      inside, credit, let_in = inside + 1, credit - 1000, let_in + 1
    end
    called, steps = called + 1, steps + 1
  end
  redis.call('HSET', KEYS[1], 'called', called, 'credit', credit, 'at', now, 'gone', gone)
  if let_in > 0 then
    redis.call('HINCRBY', KEYS[5], tenth, let_in)
  end
end

local lately = 0
local counts = redis.call('HGETALL', KEYS[5])
for i = 1, #counts, 2 do
  if tonumber(counts[i]) <= tenth - TENTHS then
    redis.call('HDEL', KEYS[5], counts[i])
  else
    lately = lately + tonumber(counts[i + 1])
  end
end
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, KEPT_MS)
end
return {1, now, next, drawn or -1, called, gone, inside, lately}
