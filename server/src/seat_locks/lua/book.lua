-- Postgres has sold these seats: the map says so, whatever happened to the hold meanwhile.
--
-- ARGV: 2 hold id, 3 owner, 4 fence, 5… the seats
-- Answers {"OK", now} (for a repeat as well) or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end

local id, owner, fence = ARGV[2], ARGV[3], ARGV[4]
local hold = read_hold(id)
if hold and hold.fence == fence then forget_hold(id, hold) end

-- Redis had lost the lock and someone else holds the seat: they keep the rest of their hold.
local function evict(seat)
  for _, other in ipairs(redis.call('HKEYS', holds)) do
    local theirs = read_hold(other)
    local rest = {}
    for _, held in ipairs(theirs.seats) do
      if held ~= seat then rest[#rest + 1] = held end
    end
    if #rest < #theirs.seats then
      theirs.seats = rest
      -- Whatever they were about to pay for has changed.
      theirs.paying = false
      if #rest == 0 then forget_hold(other, theirs) else write_hold(other, theirs) end
      return
    end
  end
end

-- A sale of a later fence is the truth: this call comes from before it. A repeat heals a map that lost
-- the sale, and counts nobody's seats twice.
local news = 0
for at = 5, #ARGV do
  local seat = tonumber(ARGV[at])
  local known = redis.call('HGET', sold, seat)
  if not known or tonumber(known) <= tonumber(fence) then
    local state = state_of(seat)
    if state == LOCKED and not (hold and hold.fence == fence) then evict(seat) end
    if state ~= BOOKED then set(seat, BOOKED) end
    if known ~= fence then
      redis.call('HSET', sold, seat, fence)
      news = news + 1
    end
  end
end
if news > 0 then
  local bought, current = read_owner(owner)
  write_owner(owner, bought + news, current)
end
return finish({ 'OK', int(now) })
