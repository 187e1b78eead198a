-- Owners' holds in this show. Coming back to it gives a hold that a closed tab had shortened its
-- original instant back, never a later one.
--
-- ARGV: 5 and on, an owner each
-- Answers {"OK", now, epoch, version, then for each owner {"HELD", hold id, hold as in with_hold} or {"GONE"}}.
local broken = unusable()
if broken then return broken end

local function mine(owner)
  local _, id = read_owner(owner)
  local hold = id and own_hold(id, owner)
  if not hold then return { 'GONE' } end
  if hold.expires ~= hold.original then
    hold.expires = hold.original
    write_hold(id, hold)
  end
  return with_hold({ 'HELD', id }, hold)
end

local answer = say('OK')
for at = 5, #ARGV do answer[at] = mine(ARGV[at]) end
return finish(answer)
