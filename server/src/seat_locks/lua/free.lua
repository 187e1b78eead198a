-- A booking gives its seats back, held or sold; only what is still its own by fence.
--
-- ARGV: 2 hold id, 3 owner, 4 fence, 5… the seats
-- Answers {"OK", now} (for a repeat as well) or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local id, owner, fence = ARGV[2], ARGV[3], ARGV[4]
local hold = read_hold(id)
if hold and hold.fence == fence then drop_hold(id, hold) end

local freed = 0
for at = 5, #ARGV do
  local seat = ARGV[at]
  if redis.call('HGET', sold, seat) == fence then
    redis.call('HDEL', sold, seat)
    set(seat, AVAILABLE)
    freed = freed + 1
  end
end
if freed > 0 then
  local bought, current = read_owner(owner)
  write_owner(owner, math.max(0, bought - freed), current)
end
return finish({ 'OK', int(now) })
