-- Marks these tickets as used: their holders have sent a request since they joined.
--
-- KEYS: as join.lua
-- ARGV: 1… numbers
-- Answers {1}
for _, number in ipairs(ARGV) do
  redis.call('SETBIT', KEYS[6], number, 1)
end
return {1}
