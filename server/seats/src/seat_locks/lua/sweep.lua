-- Frees due holds (the prelude did) and returns to the sweeper how many holds remain.
--
-- Answers {"OK", now, epoch, version, ran out, live holds, holds still due: more than one call frees}.
local broken = unusable()
if broken then return broken end
local answer = say('OK')
answer[HEAD + 1], answer[HEAD + 2] = redis.call('ZCARD', expiry), redis.call('ZCOUNT', expiry, '-inf', now)
return finish(answer)
