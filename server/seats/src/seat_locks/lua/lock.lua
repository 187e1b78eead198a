-- Grants holds: all seats and places of an attempt, or none. A call contains several attempts; each sees
-- the effects of those before it. The data of all attempts is read and written in single commands, so that an attempt
-- costs a fraction of a call.
--
-- ARGV: 5 seats and places per person at most, 6 length of a hold in ms, 7 its longest life in ms,
--       8 number of attempts, then for each: hold id (made by the caller), digest of the request, owner,
--       "1" where blocked house seats count as free for it, else "0", number of seats, number of areas, the
--       seats in order and each once, area and places of each area
-- Answers {"OK", now, epoch, version, ran out, answer of attempt 1, …}; an attempt's:
--   {"HELD", expires, latest, fence}  granted; a retry with the same id gets the same answer, also
--                                     after the hold has ended
--   {"TAKEN", seat, state, …}         every seat that is not available
--   {"FULL", area, places left, …}    every area with too few places
--   {"OTHER", hold id}                this owner has another hold in this show
--   {"LIMIT", places allowed}         more than the rest of this owner's limit
--   {"REUSED"}                        this hold id was used for another request
--   {"OUTSIDE", seat} {"NOAREA", area}  the room has no such seat or area
local broken = unusable()
if broken then return broken end

local limit, length, life, count = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

-- An attempt is identified by its start in ARGV and read from there. Its seats stay text:
-- a table per attempt, and formatting each number again, would cost more than the locking.
local ID, DIGEST, OWNER, KEPT, SEATS, AREAS, FIRST = 0, 1, 2, 3, 4, 5, 6
local starts, ids, people = {}, {}, {}
-- The position of an attempt's last seat in ARGV, by its start.
local last_of = {}
local at = 9
for number = 1, count do
  starts[number], ids[number], people[number] = at, ARGV[at + ID], ARGV[at + OWNER]
  last_of[at] = at + FIRST + ARGV[at + SEATS] - 1
  at = last_of[at] + 1 + 2 * ARGV[at + AREAS]
end

local function seats_text(start)
  return table.concat(ARGV, ',', start + FIRST, last_of[start])
end

local NONE = {}
local function places_of(start)
  if ARGV[start + AREAS] == '0' then return NONE end
  local places, from = {}, last_of[start] + 1
  for place = 1, tonumber(ARGV[start + AREAS]) do
    places[place] = { tonumber(ARGV[from]), tonumber(ARGV[from + 1]) }
    from = from + 2
  end
  return places
end

local earlier, standing = answered(ids, people), {}
for place, text in ipairs(redis.call('HMGET', owners, unpack(people))) do standing[people[place]] = text or nil end

-- The map of a cinema is read once for all attempts; that of an arena would cost more than reading the seats asked for.
local MAX_READ_WHOLE = 2048
local whole = count > 2 and room > 0 and room <= MAX_READ_WHOLE and redis.call('GET', map)
local just_locked = {}

-- The seats that are not available, as {"TAKEN", …}, or the first that does not exist, or nil.
local function in_the_way(start)
  local first, last = start + FIRST, last_of[start]
  if last < first then return nil end
  local lowest, highest = tonumber(ARGV[first]), tonumber(ARGV[last])
  if highest >= room then return { 'OUTSIDE', highest } end
  local bytes, offset = whole, 1
  if not bytes and highest - lowest < MAX_SPAN then
    bytes, offset = redis.call('GETRANGE', map, ARGV[first], ARGV[last]), 1 - lowest
    -- Usually all of it is free, and then no seat needs its own check.
    if bytes == string.rep(BYTES[AVAILABLE], highest - lowest + 1) then return nil end
  end
  local taken = nil
  for place = first, last do
    local seat = ARGV[place]
    local state = just_locked[seat] or (bytes and string.byte(bytes, seat + offset)) or state_of(seat)
    if state ~= AVAILABLE and not (state == BLOCKED and ARGV[start + KEPT] == '1') then
      taken = taken or { 'TAKEN' }
      taken[#taken + 1] = seat
      taken[#taken + 1] = state
    end
  end
  return taken
end

-- Areas with too few places, as {"FULL", …}, or the first that does not exist, or nil.
local function too_full(places)
  local full = nil
  for _, pair in ipairs(places) do
    local left = left_in(pair[1])
    if not left then return { 'NOAREA', pair[1] } end
    if left < pair[2] then
      full = full or { 'FULL' }
      full[#full + 1] = pair[1]
      full[#full + 1] = left
    end
  end
  return full
end

local function again(hold)
  if not hold then return { 'REUSED' } end
  return { 'HELD', int(hold.expires), int(hold.latest), hold.fence }
end

-- The refusal as an answer; or nil: then the hold is granted, and its seats are locked already.
local function refuse(start)
  local id, owner = ARGV[start + ID], ARGV[start + OWNER]
  local bought, current = owner_of(standing[owner])
  local places = places_of(start)
  if current == id then
    -- The stored answer is lost but the hold exists: it is from before a rebuild.
    local hold = read_hold(current)
    local same = hold and table.concat(hold.seats, ',') == seats_text(start)
      and places_text(hold.places) == places_text(places)
    return again(same and hold)
  end
  if current then return { 'OTHER', current } end
  if bought + ARGV[start + SEATS] + total(places) > limit then return { 'LIMIT', math.max(0, limit - bought) } end
  local reason = in_the_way(start) or too_full(places)
  if reason then return reason end
  set_all(start + FIRST, last_of[start], LOCKED)
  if whole then
    for seat = start + FIRST, last_of[start] do just_locked[ARGV[seat]] = LOCKED end
  end
  for _, pair in ipairs(places) do take_places(pair[1], pair[2]) end
  standing[owner] = string.format('%d:%s', bought, id)
  return nil
end

local answer, new, new_by_id, twins = say('OK'), {}, {}, {}
for number, start in ipairs(starts) do
  local id = ids[number]
  local text = earlier[id]
  if new_by_id[id] then
    twins[#twins + 1] = number
    answer[number + HEAD] = false
  elseif text then
    answer[number + HEAD] = again(granted(text, ARGV[start + DIGEST]))
  else
    local refusal = refuse(start)
    answer[number + HEAD] = refusal or false
    if not refusal then
      new[#new + 1] = number
      new_by_id[id] = number
    end
  end
end
if #new == 0 then return finish(answer) end

local fence = redis.call('INCRBY', KEYS[8], #new) - #new
local expires, latest = int(now + length), int(now + life)
local until_then, promised = expires .. ':' .. expires .. ':' .. latest .. ':', ':' .. expires .. ':' .. latest .. ':'
local held, due, owned, grants, askers = {}, {}, {}, {}, {}
for place, number in ipairs(new) do
  local start, id, mine = starts[number], ids[number], int(fence + place)
  local owner, wanted = ARGV[start + OWNER], seats_text(start) .. ':' .. places_text(places_of(start))
  local to = 2 * place
  held[to - 1] = id
  held[to] = until_then .. mine .. ':0:' .. owner .. ':' .. wanted
  due[to - 1], due[to] = expires, id
  owned[to - 1], owned[to] = owner, standing[owner]
  askers[place] = owner
  grants[to - 1] = id
  grants[to] = ARGV[start + DIGEST] .. promised .. mine .. ':' .. wanted
  answer[number + HEAD] = { 'HELD', expires, latest, mine }
end
redis.call('HSET', holds, unpack(held))
redis.call('ZADD', expiry, unpack(due))
redis.call('HSET', owners, unpack(owned))
remember(grants, askers)
-- The same intent twice in one call: the second gets the answer of the first.
for _, number in ipairs(twins) do
  local first = new_by_id[ids[number]]
  local same = ARGV[starts[number] + DIGEST] == ARGV[starts[first] + DIGEST]
  answer[number + HEAD] = same and answer[first + HEAD] or { 'REUSED' }
end
return finish(answer)
