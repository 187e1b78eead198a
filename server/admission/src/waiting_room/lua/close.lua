-- Reverts an opening that a server recorded because it did not know the later opening time.
--
-- KEYS: as join.lua
-- ARGV: 1 when the room opens, ms
-- Answers {1}
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) < tonumber(ARGV[1]) then
  redis.call('HDEL', KEYS[1], 'drawn')
end
return {1}
