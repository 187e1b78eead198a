-- Copies a hold that another store granted, with its fence. Another hold of its owner in this store is dropped for it.
--
-- ARGV: 5 hold id, 6 owner, 7 fence, 8 paying 0|1, 9 ms until it expires, 10 ms until the limit of its extensions,
--       11 number of seats, then the seats, then area and places of each area
-- Answers {"OK", now, epoch, version, ran out}, or, in place of "OK", {"TAKEN", …, seat, state, …},
--   {"FULL", …, area, places left, …}, {"OUTSIDE", …, seat}, {"NOAREA", …, area}, or
--   {"OTHER", …, hold id} when a hold of another owner has that id here.
local broken = unusable()
if broken then return broken end

local id, owner, count = ARGV[5], ARGV[6], tonumber(ARGV[11])
local hold = { owner = owner, fence = ARGV[7], paying = ARGV[8] == '1', expires = now + tonumber(ARGV[9]),
               latest = now + tonumber(ARGV[10]), seats = {}, places = {} }
hold.original = hold.expires
for at = 12, 11 + count do hold.seats[at - 11] = tonumber(ARGV[at]) end
for at = 12 + count, #ARGV, 2 do hold.places[#hold.places + 1] = { tonumber(ARGV[at]), tonumber(ARGV[at + 1]) } end

local function no(code, ...)
  local answer = say(code)
  for _, part in ipairs({ ... }) do answer[#answer + 1] = part end
  return finish(answer)
end

local namesake = read_hold(id)
if namesake and namesake.owner ~= owner then return no('OTHER', id) end
local bought, current_id = read_owner(owner)
local current = current_id and read_hold(current_id)
local stands = namesake and table.concat(namesake.seats, ',') == table.concat(hold.seats, ',')
  and places_text(namesake.places) == places_text(hold.places)
if not stands then
  local own, own_places, taken, full = {}, {}, {}, {}
  for _, seat in ipairs(current and current.seats or {}) do own[seat] = true end
  for _, pair in ipairs(current and current.places or {}) do own_places[pair[1]] = pair[2] end
  if count > 0 and hold.seats[count] >= room then return no('OUTSIDE', hold.seats[count]) end
  for _, seat in ipairs(hold.seats) do
    local state = state_of(seat)
    if state ~= AVAILABLE and not own[seat] then
      taken[#taken + 1] = seat
      taken[#taken + 1] = state
    end
  end
  if #taken > 0 then return no('TAKEN', unpack(taken)) end
  for _, pair in ipairs(hold.places) do
    local left, more = left_in(pair[1]), pair[2] - (own_places[pair[1]] or 0)
    if not left and more > 0 then return no('NOAREA', pair[1]) end
    if left and left < more then
      full[#full + 1] = pair[1]
      full[#full + 1] = left
    end
  end
  if #full > 0 then return no('FULL', unpack(full)) end
  if current then drop_hold(current_id, current) end
  for _, seat in ipairs(hold.seats) do set(seat, LOCKED) end
  for _, pair in ipairs(hold.places) do take_places(pair[1], pair[2]) end
end
write_hold(id, hold)
write_owner(owner, bought, id)
if tonumber(counters[2] or 0) < tonumber(hold.fence) then redis.call('SET', KEYS[8], hold.fence) end
return finish(say('OK'))
