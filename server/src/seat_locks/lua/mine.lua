-- An owner's hold in this show. Coming back to it gives a hold that a closed tab had shortened its
-- original instant back, never a later one.
--
-- ARGV: 2 owner
-- Answers {"OK", now, hold id, expires, fence, paying 0|1, seat, …}, {"GONE", now} or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local _, id = read_owner(ARGV[2])
local hold = id and read_hold(id)
if not hold then return finish({ 'GONE', int(now) }) end
if hold.expires ~= hold.original then
  hold.expires = hold.original
  write_hold(id, hold)
end
return finish(with_seats({ 'OK', int(now), id, int(hold.expires), hold.fence, hold.paying and 1 or 0 }, hold.seats))
