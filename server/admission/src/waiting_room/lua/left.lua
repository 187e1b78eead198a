-- Checks if a number was given back or its pass has ended; with an owner, also if it cannot let in another device of
-- this owner.
--
-- KEYS: as join.lua
-- ARGV: 1 number; with an owner also: 2 owner, 3 devices per ticket
-- Answers {1, 1 if so, else 0}
if redis.call('GETBIT', KEYS[2], ARGV[1]) == 1 then
  return {1, 1}
end
local entry = ARGV[2] and redis.call('HGET', KEYS[4], ARGV[1])
if entry then
  -- As in enter.lua: the owner of the last device that entered.
  local owner, devices = string.match(entry, '^(.*):(%d+)$')
  if owner ~= ARGV[2] and tonumber(devices) >= tonumber(ARGV[3]) then
    return {1, 1}
  end
end
return {1, 0}
