-- Put in front of every script of this folder. It reads the clock once, frees holds that are due, and defines the
-- functions of the scripts.
--
-- KEYS, the same for every script, all under one hash tag so that they share a Cluster slot:
--   1 map      string, a byte per seat: 0 available, 1 locked, 2 booked, 3 blocked
--   2 holds    hash, hold id -> "expires:original:latest:fence:paying:owner:seat,seat,…:area=places,…"
--              milliseconds on this clock; original is the expiry that a hold shortened by a closed tab gets back,
--              latest is the limit of all extensions
--   3 expiry   sorted set, hold id by expires
--   4 owners   hash, owner -> "bought:hold id" ("-" for no hold): the per-person limit
--   5 sold     hash, seat -> fence of the booking that has it, "areas fence" -> "area=places,…": a
--              repeated release frees no seat of another booking
--   6 areas    hash, area -> places left; below zero when more were sold than there were, after a hold had
--              been lost. Answers give zero then
--   7 version  counter of map versions
--   8 fence    fencing counter: grows with every hold, never decreases
--   9 epoch    when the map was built, microseconds; versions of two epochs do not compare
--  10 today    hash, intent -> the answer granted for it (see answered); "day" -> its day; "of:owner" -> the
--              intents of that owner, in order and without separators
--  11 before   the same of the day before; older days are dropped
--  12 lapses   hash, owner -> "count:last": their holds that ran out, and when the last one did, ms. Expires
--              LAPSES_COUNT after the last lapse of any owner; a purchase removes its owner
-- ARGV: 1 channel for changes, 2 command to publish with, 3 and 4 epoch and version the caller has seen.
-- Scripts begin reading their own arguments at ARGV[5].
--
-- Every script answers {code, now, epoch, version, ran out, …}, "ran out" being the number of holds that ran out and
-- were freed by this call. "NOMAP": this show was never loaded, or Redis lost it. "REGRESSED": Redis is behind the
-- version that the caller has seen, as after a failover that lost the last writes. load repairs both.

local AVAILABLE, LOCKED, BOOKED, BLOCKED = 0, 1, 2, 3
-- Due holds freed per call at most; the sweeper calls again for the rest.
local MAX_DUE_PER_CALL = '64'
-- Granted answers are kept for one to two of these, milliseconds.
local DAY = 24 * 3600 * 1000
-- Answers kept per owner and day; the oldest are dropped first. Far more than a person's changes of a hold in the time
-- in which a client retries, and few enough that no program fills the memory.
local MAX_ANSWERS_OF_OWNER = 100
-- Characters of an intent: the hexadecimal digits of a UUID.
local INTENT = 32
-- Seats within this span are read with one command.
local MAX_SPAN = 512
-- Lapses of an owner count for this long after the last one, milliseconds.
local LAPSES_COUNT = 30 * 60 * 1000
-- Owners with lapses kept at most; beyond, all of them are dropped.
local MAX_LAPSES = 20000

local map, holds, expiry, owners, sold, areas = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local lapses = KEYS[12]

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local counters = redis.call('MGET', KEYS[7], KEYS[8], KEYS[9])
local version, epoch = tonumber(counters[1] or 0), tonumber(counters[3] or 0)
-- As text, as it was read: formatting it again for every answer would cost more than reading it.
local epoch_text = counters[3] or '0'
local room = redis.call('STRLEN', map)
local missing = epoch == 0 or (room == 0 and redis.call('EXISTS', areas) == 0)
local regressed = epoch < tonumber(ARGV[3]) or (epoch == tonumber(ARGV[3]) and version < tonumber(ARGV[4]))
local changes = {}
-- Holds that ran out and were freed by this call.
local ran_out = 0

-- A whole number as text. The default formatting of Lua, and of Redis for numbers passed to a command, prints a float:
-- ten times slower, and wrong beyond 14 digits.
local function int(number)
  return string.format('%d', number)
end

local function state_of(seat)
  return string.byte(redis.call('GETRANGE', map, seat, seat))
end

local BYTES, SUFFIXES = { [0] = '\0', '\1', '\2', '\3' }, { [0] = '=0', '=1', '=2', '=3' }

-- Every extra command costs as much as a simple command, and is replicated and appended to the append-only file by
-- itself. Scripts that act on many holds therefore read them in one command and write them in one.

-- Here and below a seat is a number or text.
local function set(seat, state)
  if type(seat) == 'number' then seat = int(seat) end
  redis.call('SETRANGE', map, seat, BYTES[state])
  changes[#changes + 1] = seat .. SUFFIXES[state]
end

-- Sets the seats in ARGV from `first` to `last`, in order and each once: adjacent seats with one command.
local function set_all(first, last, state)
  local place = first
  while place <= last do
    local from = place
    if ARGV[last] - ARGV[from] == last - from then place = last end
    while place < last and ARGV[place + 1] - ARGV[place] == 1 do place = place + 1 end
    redis.call('SETRANGE', map, ARGV[from], string.rep(BYTES[state], place - from + 1))
    place = place + 1
  end
  if first <= last then
    changes[#changes + 1] = table.concat(ARGV, SUFFIXES[state] .. ',', first, last) .. SUFFIXES[state]
  end
end

-- Takes places from an area; a negative count returns places.
local function take_places(area, count)
  changes[#changes + 1] = 'a' .. area .. '=' .. math.max(0, redis.call('HINCRBY', areas, area, -count))
end

-- Places left in an area, or nil if the room has no such area.
local function left_in(area)
  local left = redis.call('HGET', areas, area)
  return left and math.max(0, tonumber(left))
end

-- "3=2,7=1" -> {{3, 2}, {7, 1}}
local function read_places(text)
  local places = {}
  for area, count in string.gmatch(text, '(%d+)=(%d+)') do places[#places + 1] = { tonumber(area), tonumber(count) } end
  return places
end

local function places_text(places)
  if #places == 0 then return '' end
  local parts = {}
  for place, pair in ipairs(places) do parts[place] = pair[1] .. '=' .. pair[2] end
  return table.concat(parts, ',')
end

local function total(places)
  local sum = 0
  for _, pair in ipairs(places) do sum = sum + pair[2] end
  return sum
end

-- The fields of a stored hold, all of them text.
local function parts_of(text)
  return string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d):([^:]*):([^:]*):(.*)$')
end

-- Parses a stored hold -> {expires, original, latest, fence, paying, owner, seats, places}, or nil for none
local function hold_of(text)
  if not text then return nil end
  local expires, original, latest, fence, paying, owner, list, places = parts_of(text)
  local seats = {}
  for seat in string.gmatch(list, '%d+') do seats[#seats + 1] = tonumber(seat) end
  return { expires = tonumber(expires), original = tonumber(original), latest = tonumber(latest), fence = fence,
           paying = paying == '1', owner = owner, seats = seats, places = read_places(places) }
end

local function read_hold(id)
  return hold_of(redis.call('HGET', holds, id))
end

-- The hold if it belongs to this owner and has not expired. A due hold counts as expired even before it is freed.
local function own_hold(id, owner)
  local hold = read_hold(id)
  if hold and hold.owner == owner and hold.expires > now then return hold end
  return nil
end

local function hold_text(hold)
  return table.concat({ int(hold.expires), int(hold.original), int(hold.latest), hold.fence, hold.paying and '1' or '0',
    hold.owner, table.concat(hold.seats, ','), places_text(hold.places) }, ':')
end

local function write_hold(id, hold)
  redis.call('HSET', holds, id, hold_text(hold))
  redis.call('ZADD', expiry, int(hold.expires), id)
end

-- "bought:hold id" -> seats bought in this show, id of the owner's hold (or nil)
local function owner_of(text)
  if not text then return 0, nil end
  local bought, id = string.match(text, '^(%d+):(.+)$')
  if id == '-' then id = nil end
  return tonumber(bought), id
end

local function read_owner(owner)
  return owner_of(redis.call('HGET', owners, owner))
end

local function write_owner(owner, bought, id)
  if bought == 0 and not id then
    redis.call('HDEL', owners, owner)
  else
    redis.call('HSET', owners, owner, bought .. ':' .. (id or '-'))
  end
end

-- Deletes a hold without freeing its seats.
local function forget_hold(id, hold)
  redis.call('HDEL', holds, id)
  redis.call('ZREM', expiry, id)
  local bought, current = read_owner(hold.owner)
  if current == id then write_owner(hold.owner, bought, nil) end
end

local function drop_hold(id, hold)
  for _, seat in ipairs(hold.seats) do set(seat, AVAILABLE) end
  for _, pair in ipairs(hold.places) do take_places(pair[1], -pair[2]) end
  forget_hold(id, hold)
end

-- Takes a seat from its hold, which keeps its other seats. A hold with a payment in progress loses it only if
-- `also_paying`. False if the seat stays.
local function evict(seat, also_paying)
  for _, id in ipairs(redis.call('HKEYS', holds)) do
    local hold = read_hold(id)
    local others = {}
    for _, held in ipairs(hold.seats) do
      if held ~= seat then others[#others + 1] = held end
    end
    if #others < #hold.seats then
      if hold.paying and not also_paying then return false end
      hold.seats = others
      -- The seats of the payment have changed.
      hold.paying = false
      if #others == 0 and #hold.places == 0 then forget_hold(id, hold) else write_hold(id, hold) end
      return true
    end
  end
  return true
end

-- Appends a hold to an answer: expires, latest, fence, paying 0|1, number of seats, the seats, area and places
-- of each area.
local function with_hold(answer, hold)
  local at = #answer
  answer[at + 1], answer[at + 2], answer[at + 3] = int(hold.expires), int(hold.latest), hold.fence
  answer[at + 4], answer[at + 5] = hold.paying and 1 or 0, #hold.seats
  for _, seat in ipairs(hold.seats) do answer[#answer + 1] = seat end
  for _, pair in ipairs(hold.places) do
    answer[#answer + 1] = pair[1]
    answer[#answer + 1] = pair[2]
  end
  return answer
end

-- The two hashes swap roles every day; the older one is overwritten.
local day = math.floor(now / DAY)
local today, before = KEYS[10 + day % 2], KEYS[11 - day % 2]

-- The earlier answers to these intents, by intent: "digest:hold as text", or nil. The same command reads the lists of
-- intents of these owners, given in any order.
local is_today
local intents_of = {}
local function answered(intents, people)
  local found, fields = {}, { 'day' }
  for _, intent in ipairs(intents) do fields[#fields + 1] = intent end
  local theirs = redis.call('HMGET', before, unpack(fields))
  for _, owner in ipairs(people) do fields[#fields + 1] = 'of:' .. owner end
  local ours = redis.call('HMGET', today, unpack(fields))
  is_today = tonumber(ours[1]) == day
  local is_before = tonumber(theirs[1]) == day - 1
  for place, intent in ipairs(intents) do
    found[intent] = (is_today and ours[place + 1]) or (is_before and theirs[place + 1]) or nil
  end
  for place, owner in ipairs(people) do
    intents_of[owner] = is_today and ours[#intents + 1 + place] or ''
  end
  return found
end

-- Stores granted answers: a list of intent, text, intent, text, …, and an owner for each of them. The script has called
-- `answered` before, with these owners.
local function remember(list, people)
  if not is_today then
    redis.call('UNLINK', today)
    list[#list + 1], list[#list + 2] = 'day', int(day)
  end
  local oldest = {}
  for place, owner in ipairs(people) do
    local own = intents_of[owner] .. list[2 * place - 1]
    local surplus = #own - MAX_ANSWERS_OF_OWNER * INTENT
    if surplus > 0 then
      for from = 1, surplus, INTENT do oldest[#oldest + 1] = string.sub(own, from, from + INTENT - 1) end
      own = string.sub(own, surplus + 1)
    end
    intents_of[owner] = own
    list[#list + 1], list[#list + 2] = 'of:' .. owner, own
  end
  redis.call('HSET', today, unpack(list))
  if #oldest > 0 then redis.call('HDEL', today, unpack(oldest)) end
end

-- Parses an earlier answer: the hold as it was granted, or nil if it was granted to another request.
local function granted(text, digest)
  local asked, expires, latest, fence, list, places = string.match(text, '^(%x+):(%d+):(%d+):(%d+):([^:]*):(.*)$')
  if asked ~= digest then return nil end
  local seats = {}
  for seat in string.gmatch(list, '%d+') do seats[#seats + 1] = tonumber(seat) end
  return { expires = tonumber(expires), latest = tonumber(latest), fence = fence, paying = false, seats = seats,
           places = read_places(places) }
end

local function granted_text(digest, hold)
  return table.concat({ digest, int(hold.expires), int(hold.latest), hold.fence, table.concat(hold.seats, ','),
    places_text(hold.places) }, ':')
end

-- The head of every answer, and its length; the fields of each script follow.
local HEAD = 5
local function say(code)
  return { code, now, epoch_text, version, ran_out }
end

-- Counts one version and publishes one message for all changes of this call.
local function finish(answer)
  if #changes > 0 then
    version = redis.call('INCR', KEYS[7])
    answer[4] = version
    redis.call(ARGV[2], ARGV[1], epoch_text .. ';' .. int(version) .. ';' .. table.concat(changes, ','))
  end
  return answer
end

-- The error answer if the map is missing or behind, or nil.
local function unusable()
  if missing then return say('NOMAP') end
  if regressed then return say('REGRESSED') end
  return nil
end

-- The number of recent lapses of an owner.
local function lapses_of(text)
  if not text then return 0 end
  local count, last = string.match(text, '^(%d+):(%d+)$')
  return now - last < LAPSES_COUNT and tonumber(count) or 0
end

-- True if a due hold ran out unused: its owner did not leave, is not paying, and it is no offer of a waiting
-- list; offers are recognised by their ids (is_offer in mod.rs).
local function is_lapse(id, hold)
  return hold.expires == hold.original and not hold.paying and string.sub(id, 13, 13) ~= '5'
end

-- Counts a lapse for each of these owners.
local function note_lapses(people)
  if #people == 0 then return end
  if redis.call('HLEN', lapses) >= MAX_LAPSES then redis.call('UNLINK', lapses) end
  local counts, list = {}, {}
  for place, text in ipairs(redis.call('HMGET', lapses, unpack(people))) do
    local owner = people[place]
    counts[owner] = (counts[owner] or lapses_of(text)) + 1
    list[#list + 1] = owner
    list[#list + 1] = int(counts[owner]) .. ':' .. int(now)
  end
  redis.call('HSET', lapses, unpack(list))
  redis.call('PEXPIRE', lapses, int(LAPSES_COUNT))
end

-- All due holds are freed before the script itself runs; `finish` announces their seats together with its own changes.
if not missing and not regressed then
  local people = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', int(now), 'LIMIT', '0', MAX_DUE_PER_CALL)) do
    local hold = read_hold(id)
    if hold then
      if is_lapse(id, hold) then people[#people + 1] = hold.owner end
      drop_hold(id, hold)
      ran_out = ran_out + 1
    else
      redis.call('ZREM', expiry, id)
    end
  end
  note_lapses(people)
end
