-- Begins payments: each hold is extended once, and can no longer be changed or shortened.
--
-- ARGV: 5 extension in ms, then for each payment: hold id, owner, fence, the seats to be paid for, "3,4,5", the
--       places, "area=places,…"
-- Answers {"OK", now, epoch, version, ran out, then for each {"OK", expires} (again for a repeat, without a second
--   extension), or {"GONE"}, or {"CHANGED"} when the hold has other seats or places by now}.
local broken = unusable()
if broken then return broken end

local extension, ids = tonumber(ARGV[5]), {}
for at = 6, #ARGV, 5 do ids[#ids + 1] = ARGV[at] end
local texts, begun, due = {}, {}, {}
for place, text in ipairs(#ids > 0 and redis.call('HMGET', holds, unpack(ids)) or {}) do texts[ids[place]] = text end

-- The rest of a stored hold is compared as text, without parsing it.
local function begin(at)
  local id, owner = ARGV[at], ARGV[at + 1]
  local text = texts[id]
  if not text then return { 'GONE' } end
  local expires, original, latest, fence, paying, rest = string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d):(.*)$')
  if fence ~= ARGV[at + 2] or tonumber(expires) <= now then return { 'GONE' } end
  if rest ~= owner .. ':' .. ARGV[at + 3] .. ':' .. ARGV[at + 4] then
    return { string.match(rest, '^[^:]*') == owner and 'CHANGED' or 'GONE' }
  end
  if paying == '0' then
    expires = int(original + extension)
    texts[id] = expires .. ':' .. expires .. ':' .. latest .. ':' .. fence .. ':1:' .. rest
    begun[#begun + 1] = id
    begun[#begun + 1] = texts[id]
    due[#due + 1] = expires
    due[#due + 1] = id
  end
  return { 'OK', expires }
end

local answer = say('OK')
for at = 6, #ARGV, 5 do answer[#answer + 1] = begin(at) end
if #begun > 0 then
  redis.call('HSET', holds, unpack(begun))
  redis.call('ZADD', expiry, unpack(due))
end
return finish(answer)
