-- Lets a visitor in whose place was called. A repeat gets the same end of the pass, never a later one.
--
-- KEYS: as join.lua
-- ARGV: 1 number, 2 place, 3 owner, 4 length of a pass, ms, 5 people inside at most,
--       6 devices per ticket, 7 no number below this is free, 8 people per second
-- Answers {code, until ms}: 1 inside, 2 not called yet, 3 called and missed: no room now, 4 used up or given
-- back, 5 inside on other devices; or {0}, as join.lua
local SPARE = 10 -- one of so many places inside is reserved for late visitors

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local number, place = ARGV[1], tonumber(ARGV[2])
local known = redis.call('HMGET', KEYS[1], 'next', 'called', 'credit', 'ghosts', 'ghosts_until')
if not known[1] or tonumber(known[1]) < tonumber(ARGV[7]) then
  return {0}
end
if redis.call('GETBIT', KEYS[2], number) == 1 then
  return {4, 0}
end
if place >= tonumber(known[2] or 0) then
  return {2, 0}
end
local until_ms = tonumber(redis.call('ZSCORE', KEYS[3], number) or 0)
local entry = redis.call('HGET', KEYS[4], number)
if entry then
  if until_ms <= now then
    redis.call('ZREM', KEYS[3], number)
    redis.call('HDEL', KEYS[4], number)
    redis.call('SETBIT', KEYS[2], number, 1)
    return {4, 0}
  end
  local owner, devices = string.match(entry, '^(.*):(%d+)$')
  if owner ~= ARGV[3] then
    if tonumber(devices) >= tonumber(ARGV[6]) then
      return {5, 0}
    end
    redis.call('HSET', KEYS[4], number, ARGV[3] .. ':' .. (tonumber(devices) + 1))
  end
  return {1, until_ms}
end
if until_ms <= now then
  -- A late visitor enters before the next call, which waits accordingly; at most a second's worth of calls.
  local ghosts = tonumber(known[4] or 0)
  if now >= tonumber(known[5] or 0) then
    ghosts = 0
  end
  local limit, credit = tonumber(ARGV[5]), tonumber(known[3] or 0)
  local is_full = redis.call('ZCARD', KEYS[3]) + ghosts >= limit + math.ceil(limit / SPARE)
  if is_full or credit <= -1000 * tonumber(ARGV[8]) then
    return {3, 0}
  end
  redis.call('HINCRBY', KEYS[1], 'credit', -1000)
end
until_ms = now + tonumber(ARGV[4])
redis.call('ZADD', KEYS[3], until_ms, number)
redis.call('HSET', KEYS[4], number, ARGV[3] .. ':1')
return {1, until_ms}
