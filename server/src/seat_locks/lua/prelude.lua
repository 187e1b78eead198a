-- Put in front of every script of this folder. It reads the clock once, frees what is due, and offers
-- the words the scripts are written in.
--
-- KEYS, the same for every script, all under one hash tag so that they share a Cluster slot:
--   1 map      string, a byte per seat: 0 available, 1 locked, 2 booked, 3 blocked
--   2 holds    hash, hold id -> "expires:original:fence:paying:owner:seat,seat,…"
--              expires and original are milliseconds on this clock; original is what a hold that was
--              shortened by a closed tab gets back
--   3 expiry   sorted set, hold id by expires
--   4 owners   hash, owner -> "bought:hold id" ("-" for no hold): the per-person limit
--   5 sold     hash, seat -> fence of the booking that has it: a repeated release frees nobody else's seat
--   6 version  counter of map versions
--   7 fence    fencing counter: grows with every hold, never goes back
--   8 epoch    when the map was built, microseconds; versions of two epochs do not compare
-- ARGV[1] is the channel for changes. Scripts begin reading their own arguments at ARGV[2].
--
-- Every script answers {code, now, …}. "NOMAP" means: this show was never loaded, or Redis lost it.

local AVAILABLE, LOCKED, BOOKED = 0, 1, 2
-- How many due holds one call frees at most; the sweeper comes back for the rest.
local MAX_DUE_PER_CALL = 64

local map, holds, expiry, owners, sold = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local version, fences, epoch, channel = KEYS[6], KEYS[7], KEYS[8], ARGV[1]

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local room = redis.call('STRLEN', map)
local changes = {}

local function state_of(seat)
  return string.byte(redis.call('GETRANGE', map, seat, seat))
end

local function set(seat, state)
  redis.call('SETRANGE', map, seat, string.char(state))
  changes[#changes + 1] = seat .. '=' .. state
end

local function int(number)
  return string.format('%.0f', number)
end

-- hold id -> {expires, original, fence, paying, owner, seats} or nil
local function read_hold(id)
  local text = redis.call('HGET', holds, id)
  if not text then return nil end
  local expires, original, fence, paying, owner, list = string.match(text, '^(%d+):(%d+):(%d+):(%d):([^:]*):(.*)$')
  local seats = {}
  for seat in string.gmatch(list, '%d+') do seats[#seats + 1] = tonumber(seat) end
  return { expires = tonumber(expires), original = tonumber(original), fence = fence, paying = paying == '1',
           owner = owner, seats = seats }
end

local function write_hold(id, hold)
  table.sort(hold.seats)
  redis.call('HSET', holds, id, table.concat({ int(hold.expires), int(hold.original), hold.fence,
    hold.paying and '1' or '0', hold.owner, table.concat(hold.seats, ',') }, ':'))
  redis.call('ZADD', expiry, int(hold.expires), id)
end

-- owner -> seats bought in this show, id of the hold they have (or nil)
local function read_owner(owner)
  local text = redis.call('HGET', owners, owner)
  if not text then return 0, nil end
  local bought, id = string.match(text, '^(%d+):(.+)$')
  if id == '-' then id = nil end
  return tonumber(bought), id
end

local function write_owner(owner, bought, id)
  if bought == 0 and not id then
    redis.call('HDEL', owners, owner)
  else
    redis.call('HSET', owners, owner, bought .. ':' .. (id or '-'))
  end
end

-- Takes a hold off the books without touching its seats.
local function forget_hold(id, hold)
  redis.call('HDEL', holds, id)
  redis.call('ZREM', expiry, id)
  local bought, current = read_owner(hold.owner)
  if current == id then write_owner(hold.owner, bought, nil) end
end

local function drop_hold(id, hold)
  for _, seat in ipairs(hold.seats) do set(seat, AVAILABLE) end
  forget_hold(id, hold)
end

-- Appends the seats' numbers to an answer.
local function with_seats(answer, seats)
  for _, seat in ipairs(seats) do answer[#answer + 1] = seat end
  return answer
end

-- One version step and one message for everything this call changed.
local function finish(answer)
  if #changes > 0 then
    local to = redis.call('INCR', version)
    redis.call('PUBLISH', channel, redis.call('GET', epoch) .. ';' .. int(to) .. ';' .. table.concat(changes, ','))
  end
  return answer
end

if room > 0 then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, MAX_DUE_PER_CALL)) do
    local hold = read_hold(id)
    if hold then drop_hold(id, hold) else redis.call('ZREM', expiry, id) end
  end
end
