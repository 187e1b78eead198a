-- Releases a hold at its owner's request.
--
-- ARGV: 5 hold id, 6 owner
-- Answers {"OK", now, epoch, version, ran out}, or, in place of "OK", "GONE" (also for a hold of another owner) or
--   "PAYING".
local broken = unusable()
if broken then return broken end

local id = ARGV[5]
local hold = own_hold(id, ARGV[6])
if not hold then return finish(say('GONE')) end
if hold.paying then return finish(say('PAYING')) end
drop_hold(id, hold)
return finish(say('OK'))
