-- Ends a payment that was not submitted: its owner can change the hold again, until its expiry before the payment.
--
-- ARGV: 5 hold id, 6 owner, 7 fence, 8 extension in ms to take back
-- Answers {"OK", now, epoch, version, ran out} (for a repeat as well) or "GONE" in place of "OK".
local broken = unusable()
if broken then return broken end

local id = ARGV[5]
local hold = own_hold(id, ARGV[6])
if not hold or hold.fence ~= ARGV[7] then return finish(say('GONE')) end
if hold.paying then
  hold.paying = false
  hold.expires = hold.original - tonumber(ARGV[8])
  hold.original = hold.expires
  write_hold(id, hold)
end
return finish(say('OK'))
