-- Postgres has sold these seats and places: the map says so, whatever happened to the hold meanwhile.
--
-- ARGV: 5 hold id, 6 owner, 7 fence, 8 number of seats, then the seats, then area and places of each area
-- Answers {"OK", now, epoch, version} (for a repeat as well).
local broken = unusable()
if broken then return broken end

local id, owner, fence, seats = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
local hold = read_hold(id)
local is_ours = hold and hold.fence == fence
-- What the hold has and the sale has not taken from it yet.
local rest, rest_places = {}, {}
if is_ours then
  for _, seat in ipairs(hold.seats) do rest[seat] = true end
  for _, pair in ipairs(hold.places) do rest_places[pair[1]] = pair[2] end
  forget_hold(id, hold)
end

-- Redis had lost the lock and someone else holds the seat: they keep the rest of their hold.
local function evict(seat)
  for _, other in ipairs(redis.call('HKEYS', holds)) do
    local theirs = read_hold(other)
    local others = {}
    for _, held in ipairs(theirs.seats) do
      if held ~= seat then others[#others + 1] = held end
    end
    if #others < #theirs.seats then
      theirs.seats = others
      -- Whatever they were about to pay for has changed.
      theirs.paying = false
      if #others == 0 and #theirs.places == 0 then forget_hold(other, theirs) else write_hold(other, theirs) end
      return
    end
  end
end

-- A sale of a later fence is the truth: this call comes from before it. A repeat heals a map that lost
-- the sale, and counts nobody's seats twice.
local news = 0
for at = 9, 8 + seats do
  local seat = tonumber(ARGV[at])
  local known = redis.call('HGET', sold, seat)
  if seat < room and (not known or tonumber(known) <= tonumber(fence)) then
    local state = state_of(seat)
    if state == LOCKED and not rest[seat] then evict(seat) end
    if state ~= BOOKED then set(seat, BOOKED) end
    if known ~= fence then
      redis.call('HSET', sold, seat, fence)
      news = news + 1
    end
  end
  rest[seat] = nil
end

-- Places are known by the fence they were sold under. Those of the hold are taken already. The others may
-- have gone to someone else, who keeps them: then the area is below zero until they let them go.
local places = {}
for at = 9 + seats, #ARGV, 2 do places[#places + 1] = { tonumber(ARGV[at]), tonumber(ARGV[at + 1]) } end
if #places > 0 and redis.call('HEXISTS', sold, 'areas ' .. fence) == 0 then
  redis.call('HSET', sold, 'areas ' .. fence, places_text(places))
  for _, pair in ipairs(places) do
    local held = rest_places[pair[1]] or 0
    if pair[2] > held then take_places(pair[1], pair[2] - held) end
    rest_places[pair[1]] = math.max(0, held - pair[2])
  end
  news = news + total(places)
end
if is_ours then
  -- What the hold had besides goes back.
  for _, pair in ipairs(hold.places) do
    if rest_places[pair[1]] > 0 then take_places(pair[1], -rest_places[pair[1]]) end
  end
  for _, seat in ipairs(hold.seats) do
    if rest[seat] then set(seat, AVAILABLE) end
  end
end
if news > 0 then
  local bought, current = read_owner(owner)
  write_owner(owner, bought + news, current)
end
return finish(say('OK'))
