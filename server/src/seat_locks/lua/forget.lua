-- The show is over: its keys go.
--
-- Answers {"OK", now, epoch, version}.
redis.call('UNLINK', unpack(KEYS))
return say('OK')
