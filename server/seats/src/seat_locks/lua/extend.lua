-- Its owner needs longer: the hold lasts longer, up to its longest life. Whoever let others run out lately gets half of
-- it, or nothing.
--
-- ARGV: 5 intent, 6 digest of the request, 7 hold id, 8 owner, 9 by how many ms, 10 half of that from so many holds that
--       ran out, 11 nothing from so many
-- Answers {"OK", now, epoch, version, ran out, hold as in with_hold} (the same again for a repeat), or, in place of
--   "OK", "GONE" (also for another's), "PAYING", "REUSED", "CAPPED" when it cannot last any longer, "LAPSED" when too
--   many others ran out.
local broken = unusable()
if broken then return broken end

local intent, digest, id = ARGV[5], ARGV[6], ARGV[7]
local earlier = answered({ intent }, { ARGV[8] })[intent]
if earlier then
  local hold = granted(earlier, digest)
  return finish(hold and with_hold(say('OK'), hold) or say('REUSED'))
end
local hold = own_hold(id, ARGV[8])
if not hold then return finish(say('GONE')) end
if hold.paying then return finish(say('PAYING')) end
local by, lapsed = tonumber(ARGV[9]), lapses_of(redis.call('HGET', lapses, ARGV[8]))
if math.min(hold.original + by, hold.latest) <= hold.original then return finish(say('CAPPED')) end
if lapsed >= tonumber(ARGV[11]) then return finish(say('LAPSED')) end
if lapsed >= tonumber(ARGV[10]) then by = math.floor(by / 2) end
local expires = math.min(hold.original + by, hold.latest)
if expires <= hold.original then return finish(say('CAPPED')) end
hold.expires, hold.original = expires, expires
write_hold(id, hold)
remember({ intent, granted_text(digest, hold) }, { ARGV[8] })
return finish(with_hold(say('OK'), hold))
