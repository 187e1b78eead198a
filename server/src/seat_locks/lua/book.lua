-- Postgres has sold these seats and places: the map says so, whatever happened to the holds meanwhile.
--
-- ARGV: 5 number of sales, then for each: hold id, owner, fence, number of seats, number of areas, the seats,
--       then area and places of each area
-- Answers {"OK", now, epoch, version} (for a repeat as well).
local broken = unusable()
if broken then return broken end

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

-- The states of seats that are close together, read in one go: the bytes, and what to add to a seat to find its own.
local function read_states(first, last)
  local lowest, highest = tonumber(ARGV[first]), tonumber(ARGV[last])
  if highest < lowest or highest - lowest >= MAX_SPAN then return '', 0 end
  return redis.call('GETRANGE', map, ARGV[first], ARGV[last]), 1 - lowest
end

-- Marks seats as sold, given in order; neighbours in one go.
local function set_booked(seats)
  local place = 1
  while place <= #seats do
    local from = place
    while place < #seats and seats[place + 1] == seats[place] + 1 do place = place + 1 end
    redis.call('SETRANGE', map, int(seats[from]), string.rep(BYTES[BOOKED], place - from + 1))
    place = place + 1
  end
  for _, seat in ipairs(seats) do changes[#changes + 1] = int(seat) .. SUFFIXES[BOOKED] end
end

-- A sale of a later fence is the truth: this call comes from before it. A repeat heals a map that lost
-- the sale, and counts nobody's seats twice. How many seats are news; takes those it sold from `rest`.
local function book_seats(first, count, fence, rest)
  if count == 0 then return 0 end
  local last = first + count - 1
  local known = redis.call('HMGET', sold, unpack(ARGV, first, last))
  local bytes, offset = read_states(first, last)
  local turned, fresh = {}, {}
  for place = first, last do
    local seat, fence_known = tonumber(ARGV[place]), known[place - first + 1]
    if seat < room and (not fence_known or tonumber(fence_known) <= tonumber(fence)) then
      local at = seat + offset
      local state = at >= 1 and string.byte(bytes, at) or state_of(seat)
      if state == LOCKED and not rest[seat] then evict(seat) end
      if state ~= BOOKED then turned[#turned + 1] = seat end
      if fence_known ~= fence then
        fresh[#fresh + 1] = ARGV[place]
        fresh[#fresh + 1] = fence
      end
    end
    rest[seat] = nil
  end
  set_booked(turned)
  if #fresh > 0 then redis.call('HSET', sold, unpack(fresh)) end
  return #fresh / 2
end

-- Places are known by the fence they were sold under. Those of the hold are taken already. The others may
-- have gone to someone else, who keeps them: then the area is below zero until they let them go.
local function book_places(first, count, fence, rest)
  local places = {}
  for at = first, first + 2 * count - 2, 2 do places[#places + 1] = { tonumber(ARGV[at]), tonumber(ARGV[at + 1]) } end
  if #places == 0 or redis.call('HEXISTS', sold, 'areas ' .. fence) == 1 then return 0 end
  redis.call('HSET', sold, 'areas ' .. fence, places_text(places))
  for _, pair in ipairs(places) do
    local held = rest[pair[1]] or 0
    if pair[2] > held then take_places(pair[1], pair[2] - held) end
    rest[pair[1]] = math.max(0, held - pair[2])
  end
  return total(places)
end

local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local id, owner, fence = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local seats, areas_sold = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local hold = read_hold(id)
  local is_ours = hold and hold.fence == fence
  -- What the hold has and the sale has not taken from it yet.
  local rest, rest_places = {}, {}
  if is_ours then
    for _, seat in ipairs(hold.seats) do rest[seat] = true end
    for _, pair in ipairs(hold.places) do rest_places[pair[1]] = pair[2] end
    if hold.owner == owner then
      redis.call('HDEL', holds, id)
      redis.call('ZREM', expiry, id)
    else
      forget_hold(id, hold)
    end
  end
  local news = book_seats(at + 5, seats, fence, rest) + book_places(at + 5 + seats, areas_sold, fence, rest_places)
  if is_ours then
    -- What the hold had besides goes back.
    for _, pair in ipairs(hold.places) do
      if rest_places[pair[1]] > 0 then take_places(pair[1], -rest_places[pair[1]]) end
    end
    for _, seat in ipairs(hold.seats) do
      if rest[seat] then set(seat, AVAILABLE) end
    end
  end
  -- Written once, for the seats they bought and the hold they have no more.
  local bought, current = read_owner(owner)
  local has_none = is_ours and current == id
  if news > 0 or has_none then write_owner(owner, bought + news, not has_none and current or nil) end
  at = at + 5 + seats + 2 * areas_sold
end
return finish(say('OK'))
