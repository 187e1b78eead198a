-- Extends a hold at its owner's request, up to its maximum life. An owner with recent lapses gets half the extension,
-- or nothing.
--
-- ARGV: 5 intent, 6 digest of the request, 7 hold id, 8 owner, 9 extension in ms, 10 number of lapses that halves it,
--       11 number of lapses that refuses it
-- Answers {"OK", now, epoch, version, ran out, hold as in with_hold} (a repeat gets the same answer), or, in place of
--   "OK", "GONE" (also for a hold of another owner), "PAYING", "REUSED", "CAPPED" at its maximum life, "LAPSED" after
--   too many lapses.
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
