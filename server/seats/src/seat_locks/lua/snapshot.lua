-- Reads the whole map at one version.
--
-- Answers {"OK", now, epoch, version, ran out, map, area, places left, …}.
local broken = unusable()
if broken then return broken end
local answer = finish(say('OK'))
answer[HEAD + 1] = redis.call('GET', map) or ''
for place, text in ipairs(redis.call('HGETALL', areas)) do
  answer[#answer + 1] = place % 2 == 1 and text or math.max(0, tonumber(text))
end
return answer
