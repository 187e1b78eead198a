-- Claims, completes, abandons and reads idempotency keys; many in one call.
--
-- KEYS, for each: 1 entry    string: the state of the key, see entry.rs; its first byte is the kind:
--                            P pending, C completed, F failed and free for another attempt
--                 2 pending  sorted set of the pending keys of this slot, by time of claim
-- ARGV: 1 number of keys, then for each: the operation, the entry to write (or ''), its lifetime in ms,
--       the token of the claim to abandon or take over (or '')
--   claim     writes a pending entry if there is none, or it failed, or it is the claim to be taken over
--   complete  writes an answer unless there is one: the first one stays
--   abandon   removes the claim with that token; writes the given entry, if any, in its place
--   read      changes nothing
-- Returns, for each: "O" when it was done, else the existing entry, or "" when there is none
local PENDING, COMPLETED, FAILED = 'P', 'C', 'F'
-- Offsets of the token of a pending entry, after the kind and the digest of the request.
local TOKEN_FROM, TOKEN_TO = 34, 49

local time = redis.call('TIME')
-- As text: Redis prints a number that it is handed as a float, which costs more than the command.
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))

local function write(entry, value, life)
  redis.call('SET', entry, value, 'PX', life)
end

local function one(kind, entry, pending, value, life, token)
  -- Nearly every claim is of a new key: it is written without a read.
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
  -- Read by the reconciler of pending keys: an entry that is not pending leaves the set.
  if state ~= PENDING then redis.call('ZREM', pending, entry) end
  return standing or ''
end

local answers, at = {}, 2
for number = 1, tonumber(ARGV[1]) do
  answers[number] = one(ARGV[at], KEYS[2 * number - 1], KEYS[2 * number], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  at = at + 4
end
return answers
