-- An owner's hold in this show. Coming back to it gives a hold that a closed tab had shortened its
-- original instant back, never a later one.
--
-- ARGV: 5 owner
-- Answers {"OK", now, epoch, version, hold id, hold as in with_hold} or "GONE" in place of "OK".
local broken = unusable()
if broken then return broken end

local _, id = read_owner(ARGV[5])
local hold = id and own_hold(id, ARGV[5])
if not hold then return finish(say('GONE')) end
if hold.expires ~= hold.original then
  hold.expires = hold.original
  write_hold(id, hold)
end
local answer = say('OK')
answer[5] = id
return finish(with_hold(answer, hold))
