-- A payment begins: the hold lasts longer, once, and can no longer be changed or shortened.
--
-- ARGV: 2 hold id, 3 owner, 4 fence, 5 extension in ms, 6 the seats to be paid for, "3,4,5"
-- Answers {"OK", now, expires} (again for a repeat, without a second extension), {"GONE", now},
--   {"CHANGED", now} when the hold has other seats by now, or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local id = ARGV[2]
local hold = read_hold(id)
if not hold or hold.owner ~= ARGV[3] or hold.fence ~= ARGV[4] then return finish({ 'GONE', int(now) }) end
if table.concat(hold.seats, ',') ~= ARGV[6] then return finish({ 'CHANGED', int(now) }) end
if not hold.paying then
  hold.paying = true
  hold.expires = hold.original + tonumber(ARGV[5])
  hold.original = hold.expires
  write_hold(id, hold)
end
return finish({ 'OK', int(now), int(hold.expires) })
