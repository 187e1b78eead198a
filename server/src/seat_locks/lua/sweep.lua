-- Frees what is due (the prelude did) and tells the sweeper whether anything is left to wait for.
--
-- Answers {"OK", now, epoch, version, live holds, holds due still: more than one call frees,
-- holds freed now}.
local broken = unusable()
if broken then return broken end
local answer = say('OK')
answer[5], answer[6] = redis.call('ZCARD', expiry), redis.call('ZCOUNT', expiry, '-inf', now)
answer[7] = freed
return finish(answer)
