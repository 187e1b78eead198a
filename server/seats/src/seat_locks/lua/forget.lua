-- Deletes the keys of a show that is over.
--
-- Answers {"OK", now, epoch, version, ran out}.
redis.call('UNLINK', unpack(KEYS))
return say('OK')
