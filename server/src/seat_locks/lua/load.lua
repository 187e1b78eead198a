-- Builds the map of a show from what Postgres knows, unless somebody just did. Holds that Redis lost
-- are lost; a new epoch tells every reader, and the fence starts above every earlier one: it is the
-- time in microseconds.
--
-- ARGV: 2 the map as bytes, 3 lowest fence allowed, 4 number of sold seats, then seat and fence of each,
--       then owner and seats bought of each
-- Answers {"OK", now}.
if room > 0 then return finish({ 'OK', int(now) }) end

redis.call('DEL', holds, expiry, owners, sold)
redis.call('SET', map, ARGV[2])
local micros = clock[1] * 1000000 + clock[2]
redis.call('SET', epoch, int(micros))
redis.call('SET', fences, int(math.max(micros, tonumber(ARGV[3]))))
local to = redis.call('INCR', version)
local at = 5
for _ = 1, tonumber(ARGV[4]) do
  redis.call('HSET', sold, ARGV[at], ARGV[at + 1])
  at = at + 2
end
while at < #ARGV do
  redis.call('HSET', owners, ARGV[at], ARGV[at + 1] .. ':-')
  at = at + 2
end
redis.call('PUBLISH', channel, int(micros) .. ';' .. int(to) .. ';*')
return { 'OK', int(now) }
