-- Uses a solution for a request, and lets its visitor pass for a while. The same request may come again: perhaps its
-- answer was lost.
--
-- KEYS: 1 spent   string: the request the solution was used for
--       2 passed  string: there while its visitor is asked for no other
-- ARGV: 1 the request, 2 how long a solution is remembered, ms, 3 how long its visitor passes, ms
-- Answers 1 when it is this request's, 0 when it was used for another
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
  return 1
end
return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0
