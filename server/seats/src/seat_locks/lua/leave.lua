-- The tab was closed: the hold expires after a grace period, unless it expires sooner or its owner returns.
-- A hold with a payment in progress is not shortened.
--
-- ARGV: 5 hold id, 6 owner, 7 grace in ms
-- Answers {"OK", now, epoch, version, ran out} or "GONE" in place of "OK".
local broken = unusable()
if broken then return broken end

local id = ARGV[5]
local hold = own_hold(id, ARGV[6])
if not hold then return finish(say('GONE')) end
if not hold.paying then
  -- At least 1 ms sooner than before: this marks that its owner left, so that its end is no lapse.
  hold.expires = math.min(hold.expires, now + tonumber(ARGV[7]), hold.original - 1)
  write_hold(id, hold)
end
return finish(say('OK'))
