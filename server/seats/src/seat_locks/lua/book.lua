-- Marks the seats and places of sales in Postgres as booked, whatever the state of their holds.
--
-- ARGV: 5 number of sales, then for each: hold id, owner, fence, number of seats, number of areas, the seats in
--       order and each once, then area and places of each area
-- Answers {"OK", now, epoch, version, ran out} (for a repeat as well).
local broken = unusable()
if broken then return broken end

-- The states of seats within MAX_SPAN, read with one command: the bytes, and the offset to add to a seat.
local function read_states(first, last)
  local lowest, highest = tonumber(ARGV[first]), tonumber(ARGV[last])
  if highest < lowest or highest - lowest >= MAX_SPAN then return '', 0 end
  return redis.call('GETRANGE', map, ARGV[first], ARGV[last]), 1 - lowest
end

-- Books seats. A seat sold under a later fence keeps it: this call is older. A repeat repairs a map that lost
-- the sale, and counts no seat twice. Returns the number of newly sold seats; removes the sold seats from `rest`.
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
      -- Redis had lost the lock, and another hold has the seat.
      if state == LOCKED and not rest[seat] then evict(seat, true) end
      if state ~= BOOKED then turned[#turned + 1] = seat end
      if fence_known ~= fence then
        fresh[#fresh + 1] = ARGV[place]
        fresh[#fresh + 1] = fence
      end
    end
    rest[seat] = nil
  end
  for _, seat in ipairs(turned) do set(seat, BOOKED) end
  if #fresh > 0 then redis.call('HSET', sold, unpack(fresh)) end
  return #fresh / 2
end

-- Books places, which are identified by the fence of their sale. Places of the hold are taken already. Other holds
-- may have taken the rest, and keep it: then the area is below zero until they release them.
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

-- Owners of holds that were booked for another owner: a seller at a counter.
local sellers = {}

-- Books one sale, whatever the state of its hold.
local function book_one(at, seats, areas_sold)
  local id, owner, fence = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local hold = read_hold(id)
  local is_ours = hold and hold.fence == fence
  -- The part of the hold that the sale has not used yet.
  local rest, rest_places = {}, {}
  if is_ours then
    for _, seat in ipairs(hold.seats) do rest[seat] = true end
    for _, pair in ipairs(hold.places) do rest_places[pair[1]] = pair[2] end
    if hold.owner == owner then
      redis.call('HDEL', holds, id)
      redis.call('ZREM', expiry, id)
    else
      forget_hold(id, hold)
      sellers[#sellers + 1] = hold.owner
    end
  end
  local news = book_seats(at + 5, seats, fence, rest) + book_places(at + 5 + seats, areas_sold, fence, rest_places)
  if is_ours then
    -- The unused part of the hold is released.
    for _, pair in ipairs(hold.places) do
      if rest_places[pair[1]] > 0 then take_places(pair[1], -rest_places[pair[1]]) end
    end
    for _, seat in ipairs(hold.seats) do
      if rest[seat] then set(seat, AVAILABLE) end
    end
  end
  -- One write for both: the newly bought seats and the hold that ended.
  local bought, current = read_owner(owner)
  local has_none = is_ours and current == id
  if news > 0 or has_none then write_owner(owner, bought + news, not has_none and current or nil) end
end

-- Usually a sale takes exactly the seats of its hold, and nothing contradicts it. Such sales are read together, and
-- written together after the last of them. From the first other sale on, sales are booked one by one.
--
-- A sale is identified by its start in ARGV, and read from there.
local ID, OWNER, FENCE, SEATS, AREAS, FIRST = 0, 1, 2, 3, 4, 5
local starts, ids, people, fields = {}, {}, {}, {}
local at = 6
for number = 1, tonumber(ARGV[5]) do
  starts[number], ids[number], people[number] = at, ARGV[at + ID], ARGV[at + OWNER]
  local behind = at + FIRST + ARGV[at + SEATS]
  for seat = at + FIRST, behind - 1 do fields[#fields + 1] = ARGV[seat] end
  if ARGV[at + AREAS] ~= '0' then fields[#fields + 1] = 'areas ' .. ARGV[at + FENCE] end
  at = behind + 2 * ARGV[at + AREAS]
end

local function read_all(hash, names)
  local found = {}
  if #names == 0 then return found end
  for place, text in ipairs(redis.call('HMGET', hash, unpack(names))) do found[names[place]] = text or nil end
  return found
end
local texts, standing, known = read_all(holds, ids), read_all(owners, people), read_all(sold, fields)

-- "area=places,…" of a sale, and the sum of its places.
local function places_sold(first, areas_sold)
  if areas_sold == 0 then return '', 0 end
  local parts, sum = {}, 0
  for area = first, first + 2 * areas_sold - 2, 2 do
    parts[#parts + 1] = ARGV[area] .. '=' .. ARGV[area + 1]
    sum = sum + ARGV[area + 1]
  end
  return table.concat(parts, ','), sum
end

local function all_are_locked(first, last)
  if last < first then return true end
  local span = ARGV[last] - ARGV[first] + 1
  if span > MAX_SPAN then return false end
  local bytes = redis.call('GETRANGE', map, ARGV[first], ARGV[last])
  if span == last - first + 1 then return bytes == string.rep(BYTES[LOCKED], span) end
  for seat = first, last do
    if string.byte(bytes, ARGV[seat] - ARGV[first] + 1) ~= LOCKED then return false end
  end
  return true
end

local over, sold_now, stand_now = {}, {}, {}
local function write_down()
  if #over == 0 then return end
  redis.call('HDEL', holds, unpack(over))
  redis.call('ZREM', expiry, unpack(over))
  if #sold_now > 0 then redis.call('HSET', sold, unpack(sold_now)) end
  redis.call('HSET', owners, unpack(stand_now))
end

-- True if a sale takes exactly its hold; then it is booked, except for the writes of write_down.
local function book_as_held(start)
  local id, owner, fence = ARGV[start + ID], ARGV[start + OWNER], ARGV[start + FENCE]
  local bought, current = owner_of(standing[owner])
  if current ~= id or not texts[id] then return false end
  local first, areas_sold = start + FIRST, tonumber(ARGV[start + AREAS])
  local last = first + ARGV[start + SEATS] - 1
  local places, count = places_sold(last + 1, areas_sold)
  local its_fence, has = string.match(texts[id], '^%d+:%d+:%d+:(%d+):%d:(.*)$')
  if its_fence ~= fence or has ~= owner .. ':' .. table.concat(ARGV, ',', first, last) .. ':' .. places then return false end
  for seat = first, last do
    if known[ARGV[seat]] then return false end
  end
  local areas_field = areas_sold > 0 and 'areas ' .. fence
  if areas_field and known[areas_field] or not all_are_locked(first, last) then return false end

  set_all(first, last, BOOKED)
  -- Later sales of this call see this one as if it were written.
  local to = #sold_now
  for seat = first, last do
    sold_now[to + 1], sold_now[to + 2], known[ARGV[seat]] = ARGV[seat], fence, fence
    to = to + 2
  end
  if areas_field then sold_now[to + 1], sold_now[to + 2], known[areas_field] = areas_field, places, places end
  over[#over + 1], texts[id] = id, nil
  to = #stand_now
  standing[owner] = string.format('%d:-', bought + last - first + 1 + count)
  stand_now[to + 1], stand_now[to + 2] = owner, standing[owner]
  return true
end

local together = true
for _, start in ipairs(starts) do
  if together and not book_as_held(start) then
    together = false
    write_down()
  end
  if not together then book_one(start, tonumber(ARGV[start + SEATS]), tonumber(ARGV[start + AREAS])) end
end
if together then write_down() end
-- A purchase clears the lapses of its buyer, and of the seller who held the seats.
for _, owner in ipairs(sellers) do people[#people + 1] = owner end
if #people > 0 then redis.call('HDEL', lapses, unpack(people)) end
return finish(say('OK'))
