-- Frees what is due (the prelude did) and tells the sweeper whether anything is left to wait for.
--
-- Answers {"OK", now, live holds} or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end
return finish({ 'OK', int(now), redis.call('ZCARD', expiry) })
