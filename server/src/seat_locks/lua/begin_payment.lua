-- A payment begins: the hold lasts longer, once, and can no longer be changed or shortened.
--
-- ARGV: 5 hold id, 6 owner, 7 fence, 8 extension in ms, 9 the seats to be paid for, "3,4,5", 10 the places,
--       "area=places,…"
-- Answers {"OK", now, epoch, version, expires} (again for a repeat, without a second extension), or, in
--   place of "OK", "GONE", or "CHANGED" when the hold has other seats or places by now.
local broken = unusable()
if broken then return broken end

local id = ARGV[5]
local hold = own_hold(id, ARGV[6])
if not hold or hold.fence ~= ARGV[7] then return finish(say('GONE')) end
if table.concat(hold.seats, ',') ~= ARGV[9] or places_text(hold.places) ~= ARGV[10] then return finish(say('CHANGED')) end
if not hold.paying then
  hold.paying = true
  hold.expires = hold.original + tonumber(ARGV[8])
  hold.original = hold.expires
  write_hold(id, hold)
end
local answer = say('OK')
answer[5] = int(hold.expires)
return finish(answer)
