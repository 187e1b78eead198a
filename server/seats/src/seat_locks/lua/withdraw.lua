-- Blocks seats for staff at once: free ones, and those of holds without a payment in progress, which keep their other
-- seats. Seats that are being paid for or sold stay as they are.
--
-- ARGV: 5… the seats
-- Answers {"OK", now, epoch, version, ran out, seats that stay …}, or, in place of "OK", {"OUTSIDE", …, seat}.
local broken = unusable()
if broken then return broken end

for at = 5, #ARGV do
  if tonumber(ARGV[at]) >= room then
    local answer = say('OUTSIDE')
    answer[HEAD + 1] = tonumber(ARGV[at])
    return finish(answer)
  end
end

local left = {}
for at = 5, #ARGV do
  local seat = tonumber(ARGV[at])
  local now_is = state_of(seat)
  if now_is == AVAILABLE or (now_is == LOCKED and evict(seat, false)) then
    set(seat, BLOCKED)
  elseif now_is ~= BLOCKED then
    left[#left + 1] = seat
  end
end
local answer = say('OK')
for place, seat in ipairs(left) do answer[HEAD + place] = seat end
return finish(answer)
