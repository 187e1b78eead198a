-- The whole map at one version.
--
-- Answers {"OK", now, epoch, version, map} or {"NOMAP", now}.
if room == 0 then return { 'NOMAP', int(now) } end
finish({})
return { 'OK', int(now), redis.call('GET', epoch), redis.call('GET', version), redis.call('GET', map) }
