-- Lets a hold go at its owner's wish.
--
-- ARGV: 2 hold id, 3 owner
-- Answers {"OK", now}, {"GONE", now} (also for another's), {"PAYING", now} or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local id = ARGV[2]
local hold = read_hold(id)
if not hold or hold.owner ~= ARGV[3] then return finish({ 'GONE', int(now) }) end
if hold.paying then return finish({ 'PAYING', int(now) }) end
drop_hold(id, hold)
return finish({ 'OK', int(now) })
