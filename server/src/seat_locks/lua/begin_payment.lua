-- Payments begin: each hold lasts longer, once, and can no longer be changed or shortened.
--
-- ARGV: 5 extension in ms, then for each payment: hold id, owner, fence, the seats to be paid for, "3,4,5", the
--       places, "area=places,…"
-- Answers {"OK", now, epoch, version, then for each {"OK", expires} (again for a repeat, without a second
--   extension), or {"GONE"}, or {"CHANGED"} when the hold has other seats or places by now}.
local broken = unusable()
if broken then return broken end

local extension = tonumber(ARGV[5])

local function begin(at)
  local id = ARGV[at]
  local hold = own_hold(id, ARGV[at + 1])
  if not hold or hold.fence ~= ARGV[at + 2] then return { 'GONE' } end
  if table.concat(hold.seats, ',') ~= ARGV[at + 3] or places_text(hold.places) ~= ARGV[at + 4] then return { 'CHANGED' } end
  if not hold.paying then
    hold.paying = true
    hold.expires = hold.original + extension
    hold.original = hold.expires
    write_hold(id, hold)
  end
  return { 'OK', int(hold.expires) }
end

local answer = say('OK')
for at = 6, #ARGV, 5 do answer[#answer + 1] = begin(at) end
return finish(answer)
