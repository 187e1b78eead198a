-- Builds the map of a show from the claims in Postgres, if it is missing or Redis fell back behind the version that the
-- caller has seen. A second caller finds it loaded. The new epoch makes every reader take a snapshot. The fence
-- starts above every earlier one: it is the time in microseconds.
--
-- Holds that survived a fall back are kept unless the claims conflict with them, so that visitors keep their seats. If
-- two visitors have the same seat after that, the claim or the fence of one refuses the other.
--
-- ARGV: 5 the map as bytes, 6 lowest fence allowed, 7 number of sold seats, 8 number of areas, 9 number of
--       sales with places, 10 number of owners, 11 "1" if the show is over; then seat and fence of each sold
--       seat, area and places left of each, fence and "area=places,…" of each sale, owner and seats bought of each
-- Answers {"OK", now, epoch, version, ran out}.
if not missing and not regressed then return finish(say('OK')) end

local survivors = {}
if not missing then
  for _, id in ipairs(redis.call('HKEYS', holds)) do survivors[#survivors + 1] = { id = id, hold = read_hold(id) } end
end
table.sort(survivors, function(a, b) return tonumber(a.hold.fence) < tonumber(b.hold.fence) end)
redis.call('DEL', map, holds, expiry, owners, sold, areas)
if #ARGV[5] > 0 then redis.call('SET', map, ARGV[5]) end
room = #ARGV[5]

local at = 12
local function each(count, act)
  for _ = 1, tonumber(count) do
    act(ARGV[at], ARGV[at + 1])
    at = at + 2
  end
end
each(ARGV[7], function(seat, fence) redis.call('HSET', sold, seat, fence) end)
each(ARGV[8], function(area, left) redis.call('HSET', areas, area, left) end)
each(ARGV[9], function(fence, places) redis.call('HSET', sold, 'areas ' .. fence, places) end)
each(ARGV[10], function(owner, bought) redis.call('HSET', owners, owner, bought .. ':-') end)

local function fits(hold)
  for _, seat in ipairs(hold.seats) do
    if seat >= room or state_of(seat) ~= AVAILABLE then return false end
  end
  for _, pair in ipairs(hold.places) do
    if tonumber(redis.call('HGET', areas, pair[1]) or 0) < pair[2] then return false end
  end
  return true
end
for _, survivor in ipairs(survivors) do
  local hold = survivor.hold
  local bought, current = read_owner(hold.owner)
  if not current and fits(hold) then
    for _, seat in ipairs(hold.seats) do set(seat, LOCKED) end
    for _, pair in ipairs(hold.places) do take_places(pair[1], pair[2]) end
    write_hold(survivor.id, hold)
    write_owner(hold.owner, bought, survivor.id)
  end
end

local micros = clock[1] * 1000000 + clock[2]
epoch_text = int(math.max(micros, tonumber(ARGV[3]) + 1))
redis.call('SET', KEYS[9], epoch_text)
redis.call('SET', KEYS[8], int(math.max(micros, tonumber(ARGV[6]), tonumber(counters[2] or 0))))
version = redis.call('INCR', KEYS[7])
-- The sweeper deletes no map of a show that ended more than a month ago.
if ARGV[11] == '1' then
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, int(DAY)) end
end
redis.call(ARGV[2], ARGV[1], epoch_text .. ';' .. int(version) .. ';*')
return say('OK')
