-- Spends a solution on a request, and exempts its visitor for a while. The same request may come again, if its
-- answer was lost.
--
-- KEYS: 1 spent   string: the request the solution was spent on
--       2 passed  string: exists while its visitor is exempt
-- ARGV: 1 the request, 2 lifetime of the spent key, ms, 3 lifetime of the exemption, ms
-- Answers 1 if it was spent on this request, 0 if on another
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
  return 1
end
return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0
