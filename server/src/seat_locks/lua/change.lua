-- Adds seats to a hold and lets others go, in one step, all or none. Never moves the expiry.
--
-- ARGV: 2 seats per person at most, 3 hold id, 4 owner, 5 number of seats to add, 6 number to let go,
--       then the seats to add, then the seats to let go
-- Answers {"OK", now, expires, fence, seat, …} (no seats: the hold is over), {"GONE", now},
--   {"PAYING", now}, {"TAKEN", now, seat, state, …}, {"LIMIT", now, seats allowed},
--   {"OUTSIDE", now, seat} or {"NOMAP", now}. Another's hold is "GONE".
if room == 0 then return { 'NOMAP', int(now) } end

local limit, id, owner = tonumber(ARGV[2]), ARGV[3], ARGV[4]
local adding, leaving = tonumber(ARGV[5]), tonumber(ARGV[6])
local hold = read_hold(id)
if not hold or hold.owner ~= owner then return finish({ 'GONE', int(now) }) end
if hold.paying then return finish({ 'PAYING', int(now) }) end

local leave, mine = {}, {}
for at = 7 + adding, 6 + adding + leaving do leave[tonumber(ARGV[at])] = true end
for _, seat in ipairs(hold.seats) do mine[seat] = true end

local kept, let_go, added, taken = {}, {}, {}, { 'TAKEN', int(now) }
for _, seat in ipairs(hold.seats) do
  local list = leave[seat] and let_go or kept
  list[#list + 1] = seat
end
for at = 7, 6 + adding do
  local seat = tonumber(ARGV[at])
  if seat >= room then return finish({ 'OUTSIDE', int(now), seat }) end
  if not mine[seat] then
    local state = state_of(seat)
    if state ~= AVAILABLE then with_seats(taken, { seat, state }) end
    added[#added + 1] = seat
  end
end
if #taken > 2 then return finish(taken) end
local bought = read_owner(owner)
if bought + #kept + #added > limit then return finish({ 'LIMIT', int(now), limit - bought }) end

for _, seat in ipairs(let_go) do set(seat, AVAILABLE) end
for _, seat in ipairs(added) do set(seat, LOCKED) end
hold.seats = with_seats(kept, added)
if #hold.seats == 0 then
  forget_hold(id, hold)
else
  write_hold(id, hold)
end
return finish(with_seats({ 'OK', int(now), int(hold.expires), hold.fence }, hold.seats))
