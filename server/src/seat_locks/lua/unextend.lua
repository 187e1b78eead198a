-- A payment was not submitted after all: the hold is its owner's to change again, until its own end.
--
-- ARGV: 2 hold id, 3 owner, 4 fence, 5 extension in ms to take back
-- Answers {"OK", now} (for a repeat as well), {"GONE", now} or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local id = ARGV[2]
local hold = read_hold(id)
if not hold or hold.owner ~= ARGV[3] or hold.fence ~= ARGV[4] then return finish({ 'GONE', int(now) }) end
if hold.paying then
  hold.paying = false
  hold.expires = hold.original - tonumber(ARGV[5])
  hold.original = hold.expires
  write_hold(id, hold)
end
return finish({ 'OK', int(now) })
