-- Blocks seats for staff, or unblocks them: all or none. A seat already in the wanted state is no error.
--
-- ARGV: 5 "1" to block, "0" to unblock, 6… the seats
-- Answers {"OK", now, epoch, version, ran out}, or, in place of "OK", {"TAKEN", …, seat, state, …} with every seat
--   that is held or sold, or {"OUTSIDE", …, seat}.
local broken = unusable()
if broken then return broken end

local state = ARGV[5] == '1' and BLOCKED or AVAILABLE
local taken, change = say('TAKEN'), {}
for at = 6, #ARGV do
  local seat = tonumber(ARGV[at])
  if seat >= room then
    local answer = say('OUTSIDE')
    answer[HEAD + 1] = seat
    return finish(answer)
  end
  local now_is = state_of(seat)
  if now_is == LOCKED or now_is == BOOKED then
    taken[#taken + 1] = seat
    taken[#taken + 1] = now_is
  elseif now_is ~= state then
    change[#change + 1] = seat
  end
end
if #taken > HEAD then return finish(taken) end
for _, seat in ipairs(change) do set(seat, state) end
return finish(say('OK'))
