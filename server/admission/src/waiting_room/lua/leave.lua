-- Gives a number back, before its turn or inside, which makes room.
--
-- KEYS: as join.lua
-- ARGV: 1 number, 2 place; -1: there are no places yet, 3 no number below this is free
-- Answers {1} or {0}, as join.lua
local known = redis.call('HMGET', KEYS[1], 'next', 'called')
if not known[1] or tonumber(known[1]) < tonumber(ARGV[3]) then
  return {0}
end
if tonumber(ARGV[1]) >= tonumber(known[1]) then
  return {1}
end
if redis.call('SETBIT', KEYS[2], ARGV[1], 1) == 0 then
  local place = tonumber(ARGV[2])
  if place < 0 or place >= tonumber(known[2] or 0) then
    redis.call('HINCRBY', KEYS[1], 'gone', 1)
  end
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('HDEL', KEYS[4], ARGV[1])
end
return {1}
