-- The tab was closed: the hold ends after a grace, unless it ends sooner or its owner comes back.
-- A hold with a payment in progress is not shortened.
--
-- ARGV: 2 hold id, 3 owner, 4 grace in ms
-- Answers {"OK", now}, {"GONE", now} or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local id = ARGV[2]
local hold = read_hold(id)
if not hold or hold.owner ~= ARGV[3] then return finish({ 'GONE', int(now) }) end
if not hold.paying then
  hold.expires = math.min(hold.expires, now + tonumber(ARGV[4]))
  write_hold(id, hold)
end
return finish({ 'OK', int(now) })
