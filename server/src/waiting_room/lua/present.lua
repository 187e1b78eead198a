-- Notes that the holders of these tickets have asked again since they joined.
--
-- KEYS: as join.lua
-- ARGV: 1… numbers
-- Answers {1}
for _, number in ipairs(ARGV) do
  redis.call('SETBIT', KEYS[6], number, 1)
end
return {1}
