-- Adds seats and places to a hold and releases others, in one step, all or none. Never moves the expiry. A request that
-- changes nothing is answered with the hold as it is, and not stored for replay.
--
-- ARGV: 5 intent, 6 digest of the request, 7 seats and places per person at most, 8 hold id, 9 owner,
--       10 seats to add, 11 seats to release, 12 areas to add places of, 13 areas to release places of,
--       then the seats to add, the seats to release, area and places of each, in that order
-- Answers {"OK", now, epoch, version, ran out, hold as in with_hold} (without seats and places the hold has ended;
--   a repeat gets the same answer), or, in place of "OK", "GONE" (also for another owner's hold), "PAYING", "REUSED",
--   {"TAKEN", …, seat, state, …}, {"FULL", …, area, places left, …}, {"LIMIT", …, places allowed},
--   {"OUTSIDE", …, seat}, {"NOAREA", …, area}.
local broken = unusable()
if broken then return broken end

local intent, digest, limit, id, owner = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local earlier = answered({ intent }, { owner })[intent]
if earlier then
  local hold = granted(earlier, digest)
  return finish(hold and with_hold(say('OK'), hold) or say('REUSED'))
end
local hold = own_hold(id, owner)
if not hold then return finish(say('GONE')) end
if hold.paying then return finish(say('PAYING')) end

local at = 14
local function numbers(count)
  local list = {}
  for place = 1, count do list[place] = tonumber(ARGV[at]); at = at + 1 end
  return list
end
local function pairs_of(count)
  local list = {}
  for place = 1, count do list[place] = { tonumber(ARGV[at]), tonumber(ARGV[at + 1]) }; at = at + 2 end
  return list
end
local adding, leaving = numbers(tonumber(ARGV[10])), numbers(tonumber(ARGV[11]))
local joining, parting = pairs_of(tonumber(ARGV[12])), pairs_of(tonumber(ARGV[13]))

local leave, mine = {}, {}
for _, seat in ipairs(leaving) do leave[seat] = true end
for _, seat in ipairs(hold.seats) do mine[seat] = true end

local kept, let_go, added, taken = {}, {}, {}, say('TAKEN')
for _, seat in ipairs(hold.seats) do
  local list = leave[seat] and let_go or kept
  list[#list + 1] = seat
end
for _, seat in ipairs(adding) do
  if seat >= room then
    local answer = say('OUTSIDE')
    answer[HEAD + 1] = seat
    return finish(answer)
  end
  if not mine[seat] then
    local state = state_of(seat)
    if state ~= AVAILABLE then
      taken[#taken + 1] = seat
      taken[#taken + 1] = state
    end
    added[#added + 1] = seat
  end
end
if #taken > HEAD then return finish(taken) end

-- Places of the hold after the change, and how many each area gives (negative: gets back).
local wanted, gives, order = {}, {}, {}
local function note(area, count)
  if not gives[area] then
    gives[area] = 0
    order[#order + 1] = area
  end
  gives[area] = gives[area] + count
end
for _, pair in ipairs(hold.places) do wanted[pair[1]] = pair[2] end
for _, pair in ipairs(parting) do
  local count = math.min(pair[2], wanted[pair[1]] or 0)
  wanted[pair[1]] = (wanted[pair[1]] or 0) - count
  note(pair[1], -count)
end
for _, pair in ipairs(joining) do
  wanted[pair[1]] = (wanted[pair[1]] or 0) + pair[2]
  note(pair[1], pair[2])
end
local full = say('FULL')
for _, area in ipairs(order) do
  local left = left_in(area)
  if not left and gives[area] > 0 then
    local answer = say('NOAREA')
    answer[HEAD + 1] = area
    return finish(answer)
  elseif left and left < gives[area] then
    full[#full + 1] = area
    full[#full + 1] = left
  end
end
if #full > HEAD then return finish(full) end

local places = {}
for area, count in pairs(wanted) do
  if count > 0 then places[#places + 1] = { area, count } end
end
table.sort(places, function(a, b) return a[1] < b[1] end)
local bought = read_owner(owner)
if #adding + #joining > 0 and bought + #kept + #added + total(places) > limit then
  local answer = say('LIMIT')
  answer[HEAD + 1] = math.max(0, limit - bought)
  return finish(answer)
end

-- A request that changes nothing is not stored: a replay could not do anything twice.
local changes_something = #let_go + #added > 0
for _, area in ipairs(order) do changes_something = changes_something or gives[area] ~= 0 end
if not changes_something then return finish(with_hold(say('OK'), hold)) end

for _, seat in ipairs(let_go) do set(seat, AVAILABLE) end
for _, seat in ipairs(added) do set(seat, LOCKED) end
for _, area in ipairs(order) do
  if gives[area] ~= 0 then take_places(area, gives[area]) end
end
for _, seat in ipairs(added) do kept[#kept + 1] = seat end
table.sort(kept)
hold.seats, hold.places = kept, places
if #kept == 0 and #places == 0 then
  forget_hold(id, hold)
else
  write_hold(id, hold)
end
remember({ intent, granted_text(digest, hold) }, { owner })
return finish(with_hold(say('OK'), hold))
