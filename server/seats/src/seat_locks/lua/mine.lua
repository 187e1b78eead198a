-- The holds of owners in this show. Reading a hold that a closed tab had shortened restores its
-- original expiry, never a later one.
--
-- ARGV: 5 and following, one owner each
-- Answers {"OK", now, epoch, version, ran out, then for each owner {"HELD", hold id, hold as in with_hold} or
--   {"GONE"}}.
local broken = unusable()
if broken then return broken end

-- The answer reuses the stored text of a hold: parsing its numbers would cost more and is not needed.
local function held(id, text, asking)
  local expires, original, latest, fence, paying, owner, list, places = parts_of(text)
  if owner ~= asking or tonumber(expires) <= now then return nil end
  if expires ~= original then
    local hold = hold_of(text)
    hold.expires, expires = hold.original, original
    write_hold(id, hold)
  end
  local part, last = { 'HELD', id, expires, latest, fence, paying == '1' and 1 or 0, 0 }, 7
  for seat in string.gmatch(list, '%d+') do
    last = last + 1
    part[last] = seat
  end
  part[7] = last - 7
  if places ~= '' then
    for number in string.gmatch(places, '%d+') do part[#part + 1] = number end
  end
  return part
end

local answer, ids, whose = say('OK'), {}, {}
for place, text in ipairs(#ARGV > 4 and redis.call('HMGET', owners, unpack(ARGV, 5)) or {}) do
  local _, id = owner_of(text)
  if id then ids[#ids + 1], whose[#whose + 1] = id, place + HEAD end
  answer[place + HEAD] = false
end

local texts = #ids > 0 and redis.call('HMGET', holds, unpack(ids)) or {}
for place, id in ipairs(ids) do
  local at = whose[place]
  answer[at] = texts[place] and held(id, texts[place], ARGV[at - HEAD + 4])
end
for at = HEAD + 1, #ARGV + HEAD - 4 do answer[at] = answer[at] or { 'GONE' } end
return finish(answer)
