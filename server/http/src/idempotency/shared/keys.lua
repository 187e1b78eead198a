-- Claims, completes, gives up and reads keys of requests; many in one call.
--
-- KEYS, for each: 1 entry    string: what is known of the key, see entry.rs; its first byte says which:
--                            P pending, C completed, F failed and free for another try
--                 2 pending  sorted set of the keys of this slot that are pending, by when
-- ARGV: 1 number of keys, then for each: what to do, the entry to write (or ''), how long it lives in ms,
--       the token of the claim that is given up or taken over (or '')
--   claim     writes a pending entry if there is none, or it failed, or it is the claim to be taken over
--   complete  writes an answer unless there is one: the first one stays
--   abandon   takes back the claim with that token; leaves the entry given, if any, in its place
--   read      changes nothing
-- Answers, for each: "O" when it was done, else the entry that stands there, or "" when there is none
local PENDING, COMPLETED, FAILED = 'P', 'C', 'F'
-- Behind the kind and the digest of the request: whose claim a pending entry is.
local TOKEN_FROM, TOKEN_TO = 34, 49

local time = redis.call('TIME')
-- As text: Redis prints a number that it is handed as a float, which costs more than the command.
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))

local function write(entry, value, life)
  redis.call('SET', entry, value, 'PX', life)
end

local function one(kind, entry, pending, value, life, token)
  -- Nearly every claim is of a key that nobody has heard of: it is written without a look.
  if kind == 'claim' and redis.call('SET', entry, value, 'PX', life, 'NX') then
    redis.call('ZADD', pending, now, entry)
    return 'O'
  end
  local standing = redis.call('GET', entry)
  local state = standing and string.sub(standing, 1, 1)
  local claimed_by = state == PENDING and string.sub(standing, TOKEN_FROM, TOKEN_TO)
  if kind == 'claim' then
    -- The same claim again: its first answer was lost.
    local is_free = not standing or state == FAILED or standing == value or claimed_by == token
    if not is_free then return standing end
    write(entry, value, life)
    redis.call('ZADD', pending, now, entry)
    return 'O'
  end
  if kind == 'complete' then
    if state == COMPLETED then return standing end
    write(entry, value, life)
    if state == PENDING then redis.call('ZREM', pending, entry) end
    return 'O'
  end
  if kind == 'abandon' then
    if not claimed_by or claimed_by ~= token then return standing or '' end
    if value == '' then redis.call('DEL', entry) else write(entry, value, life) end
    redis.call('ZREM', pending, entry)
    return 'O'
  end
  -- Read by whoever looks after pending ones: what is none any more leaves their list.
  if state ~= PENDING then redis.call('ZREM', pending, entry) end
  return standing or ''
end

local answers, at = {}, 2
for number = 1, tonumber(ARGV[1]) do
  answers[number] = one(ARGV[at], KEYS[2 * number - 1], KEYS[2 * number], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  at = at + 4
end
return answers
