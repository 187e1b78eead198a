-- Frees what is due (the prelude did) and tells the sweeper whether anything is left to wait for.
--
-- Answers {"OK", now, epoch, version, ran out, live holds, holds due still: more than one call frees}.
local broken = unusable()
if broken then return broken end
local answer = say('OK')
answer[HEAD + 1], answer[HEAD + 2] = redis.call('ZCARD', expiry), redis.call('ZCOUNT', expiry, '-inf', now)
return finish(answer)
