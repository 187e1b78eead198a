-- Frees the seats and places of a booking, held or sold, as far as they still carry its fence. Seats to be blocked
-- are blocked in the same step.
--
-- ARGV: 5 number of seats to block, then those, then hold id, owner, fence, number of seats, then the seats, then area
--       and places of each area
-- Answers {"OK", now, epoch, version, ran out} (for a repeat as well).
local broken = unusable()
if broken then return broken end

local first = 6 + tonumber(ARGV[5])
local kept = {}
for at = 6, first - 1 do kept[ARGV[at]] = true end
local id, owner, fence, seats = ARGV[first], ARGV[first + 1], ARGV[first + 2], tonumber(ARGV[first + 3])
local hold = read_hold(id)
if hold and hold.fence == fence then drop_hold(id, hold) end

local freed = 0
for at = first + 4, first + 3 + seats do
  local seat = ARGV[at]
  if redis.call('HGET', sold, seat) == fence then
    redis.call('HDEL', sold, seat)
    set(tonumber(seat), kept[seat] and BLOCKED or AVAILABLE)
    freed = freed + 1
  end
end
-- Seats to block that the dropped hold had.
for at = 6, first - 1 do
  if state_of(ARGV[at]) == AVAILABLE then set(ARGV[at], BLOCKED) end
end
local text = redis.call('HGET', sold, 'areas ' .. fence)
if text then
  -- A sale may be returned in part: the places asked for, at most those sold.
  local left, back = {}, {}
  for at = first + 4 + seats, #ARGV, 2 do back[tonumber(ARGV[at])] = tonumber(ARGV[at + 1]) end
  for _, pair in ipairs(read_places(text)) do
    local count = math.min(pair[2], back[pair[1]] or 0)
    if count > 0 then take_places(pair[1], -count) end
    if pair[2] > count then left[#left + 1] = { pair[1], pair[2] - count } end
    freed = freed + count
  end
  if #left == 0 then
    redis.call('HDEL', sold, 'areas ' .. fence)
  else
    redis.call('HSET', sold, 'areas ' .. fence, places_text(left))
  end
end
if freed > 0 then
  local bought, current = read_owner(owner)
  write_owner(owner, math.max(0, bought - freed), current)
end
return finish(say('OK'))
