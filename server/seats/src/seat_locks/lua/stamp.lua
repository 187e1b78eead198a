-- Copies the fences that another store gave to these holds.
--
-- ARGV: 5 number of holds, then for each: hold id, fence
-- Answers {"OK", now, epoch, version, ran out}; a hold that does not exist here is skipped.
local broken = unusable()
if broken then return broken end

local highest = tonumber(counters[2] or 0)
for at = 6, 4 + 2 * tonumber(ARGV[5]), 2 do
  local hold = read_hold(ARGV[at])
  if hold and hold.fence ~= ARGV[at + 1] then
    hold.fence = ARGV[at + 1]
    write_hold(ARGV[at], hold)
    highest = math.max(highest, tonumber(hold.fence))
  end
end
if highest > tonumber(counters[2] or 0) then redis.call('SET', KEYS[8], int(highest)) end
return finish(say('OK'))
