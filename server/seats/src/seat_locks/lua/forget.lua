-- The show is over: its keys go.
--
-- Answers {"OK", now, epoch, version, ran out}.
redis.call('UNLINK', unpack(KEYS))
return say('OK')
