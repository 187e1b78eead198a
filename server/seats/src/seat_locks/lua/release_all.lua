-- Releases the holds of a show for staff, in batches; those with a payment in progress stay.
--
-- ARGV: 5 holds to skip (found paying so far), 6 holds to read
-- Answers {"OK", now, epoch, version, ran out, holds released, holds found paying, holds not read yet}.
local broken = unusable()
if broken then return broken end

local from, count = tonumber(ARGV[5]), tonumber(ARGV[6])
local released, paying = 0, 0
for _, id in ipairs(redis.call('ZRANGE', expiry, from, from + count - 1)) do
  local hold = read_hold(id)
  if hold.paying then
    paying = paying + 1
  else
    drop_hold(id, hold)
    released = released + 1
  end
end
local answer = say('OK')
answer[HEAD + 1], answer[HEAD + 2] = released, paying
answer[HEAD + 3] = math.max(0, redis.call('ZCARD', expiry) - from - paying)
return finish(answer)
