-- Takes holds: all seats of an attempt, or none. Several attempts travel in one call; each sees what
-- those before it did.
--
-- ARGV: 2 seats per person at most, 3 number of attempts, then for each attempt
--       hold id (made by the caller), owner, length in ms, number of seats, the seats in order
-- Answers {"OK", now, answer of attempt 1, answer of attempt 2, …} or {"NOMAP", now}; an attempt's:
--   {"HELD", expires, fence}      the seats are yours; a retry with the same id gets the same again
--   {"TAKEN", seat, state, …}     every seat that stood in the way
--   {"OTHER", hold id}            this owner has another hold in this show
--   {"LIMIT", seats allowed}      more than this person may still have
--   {"REUSED"}                    this hold id was used for other seats or by another owner
--   {"OUTSIDE", seat}             the room has no such seat
if room == 0 then return { 'NOMAP', int(now) } end

local limit, attempts = tonumber(ARGV[2]), tonumber(ARGV[3])
local at = 4

local function try(id, owner, length, seats)
  local earlier = read_hold(id)
  if earlier then
    if earlier.owner ~= owner or table.concat(earlier.seats, ',') ~= table.concat(seats, ',') then
      return { 'REUSED' }
    end
    return { 'HELD', int(earlier.expires), earlier.fence }
  end
  local bought, current = read_owner(owner)
  if current then return { 'OTHER', current } end
  if bought + #seats > limit then return { 'LIMIT', limit - bought } end
  local taken = { 'TAKEN' }
  for _, seat in ipairs(seats) do
    if seat >= room then return { 'OUTSIDE', seat } end
    local state = state_of(seat)
    if state ~= AVAILABLE then with_seats(taken, { seat, state }) end
  end
  if #taken > 1 then return taken end
  for _, seat in ipairs(seats) do set(seat, LOCKED) end
  local expires = now + length
  local fence = int(redis.call('INCR', fences))
  write_hold(id, { expires = expires, original = expires, fence = fence, paying = false, owner = owner, seats = seats })
  write_owner(owner, bought, id)
  return { 'HELD', int(expires), fence }
end

local answer = { 'OK', int(now) }
for _ = 1, attempts do
  local id, owner, length, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  at = at + 4
  local seats = {}
  for place = 1, count do seats[place] = tonumber(ARGV[at + place - 1]) end
  at = at + count
  answer[#answer + 1] = try(id, owner, length, seats)
end
return finish(answer)
