-- Renews a hold under another id and a new fence, and possibly another owner: a payment was declined, or an offer was
-- opened on another device. Its seats are never free in between, and the old id and fence become invalid.
--
-- ARGV: 5 hold id, 6 owner, 7 fence, 8 new id, 9 new owner, 10 new expiry, ms on this clock, 11 "1" if it ends a
--       payment in progress, else "0", 12 seats and places one person may hold and own, or "-"
-- Answers {"OK", now, epoch, version, ran out, hold as in with_hold} (in its present state for a repeat), or, in place
--   of "OK", "GONE", "PAYING", {"OTHER", …, hold id} when the new owner has another hold, {"LIMIT", …, how many more
--   the new owner may have}.
local broken = unusable()
if broken then return broken end

local id, owner, next_id, next_owner, till = ARGV[5], ARGV[6], ARGV[8], ARGV[9], tonumber(ARGV[10])
local renewed = own_hold(next_id, next_owner)
if renewed then return finish(with_hold(say('OK'), renewed)) end
local hold = own_hold(id, owner)
if not hold or hold.fence ~= ARGV[7] or till <= now or read_hold(next_id) then return finish(say('GONE')) end
if hold.paying and ARGV[11] == '0' then return finish(say('PAYING')) end

local bought, current = read_owner(next_owner)
if current and current ~= id then
  local answer = say('OTHER')
  answer[HEAD + 1] = current
  return finish(answer)
end
if ARGV[12] ~= '-' and bought + #hold.seats + total(hold.places) > tonumber(ARGV[12]) then
  local answer = say('LIMIT')
  answer[HEAD + 1] = math.max(0, tonumber(ARGV[12]) - bought)
  return finish(answer)
end
forget_hold(id, hold)
hold.owner, hold.fence, hold.paying = next_owner, int(redis.call('INCR', KEYS[8])), false
hold.expires, hold.original, hold.latest = till, till, math.max(hold.latest, till)
write_hold(next_id, hold)
write_owner(next_owner, bought, next_id)
return finish(with_hold(say('OK'), hold))
