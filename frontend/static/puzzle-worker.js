// Solves the puzzle that stands in front of seats many want at once: a number behind the challenge, so that the SHA-256
// of both begins with so many zero bits (docs/api.md). A worker, so that the page stays quick; loaded by whoever is asked.
//
// SHA-256 of our own (FIPS 180-4): the browser's answers each try by a promise, which is far slower, and is not there
// without TLS. What the challenge fills whole blocks of 64 bytes with is hashed once, not at every try.

// Nobody is asked for more: at 2^18 tries on average, one puzzle in e^64 takes more than these.
const MOST_BITS = 18;
const MOST_TRIES = 64 * 2 ** MOST_BITS;
// Challenges are shorter.
const MOST_BYTES = 1_024;

self.onmessage = ({ data }) => {
  // Nothing is an answer as well: the page says so, and asks no further.
  self.postMessage(typeof data === "string" ? solve(data) : null);
};

/** The first solution; nothing where there is none to be had. */
function solve(challenge) {
  const bits = Number.parseInt(challenge, 10);
  const front = new TextEncoder().encode(`${challenge}-`);
  if (!(bits >= 0 && bits <= MOST_BITS) || front.length > MOST_BYTES) return null;
  const whole = front.length - (front.length % 64);
  const begun = Int32Array.from(FIRST);
  for (let at = 0; at < whole; at += 64) mix(begun, front, at);
  const rest = front.subarray(whole);
  const state = new Int32Array(8);
  for (let number = 0; number < MOST_TRIES; number += 1) {
    const tail = ended(rest, String(number), front.length);
    state.set(begun);
    for (let at = 0; at < tail.length; at += 64) mix(state, tail, at);
    if (Math.clz32(state[0]) >= bits) return `${challenge}-${number}`;
  }
  return null;
}

const tails = [new Uint8Array(64), new Uint8Array(128)];

/** The last blocks of a message: what was not hashed yet, the number, and how it ends. */
function ended(rest, number, before) {
  const length = rest.length + number.length;
  const tail = tails[length + 9 > 64 ? 1 : 0];
  tail.fill(0);
  tail.set(rest);
  for (let digit = 0; digit < number.length; digit += 1) tail[rest.length + digit] = number.charCodeAt(digit);
  tail[length] = 0x80;
  // How many bits there were: of a text of ours, fewer than 2^16.
  const bits = (before + number.length) * 8;
  tail[tail.length - 2] = bits >>> 8;
  tail[tail.length - 1] = bits;
  return tail;
}

// The first 32 bits of the fractions of the square roots of the first 8 primes, and of the cube roots of the first 64.
const PRIMES = primes(64);
const FIRST = PRIMES.slice(0, 8).map((prime) => fraction(prime ** (1 / 2)));
const ROUND = Int32Array.from(PRIMES, (prime) => fraction(prime ** (1 / 3)));
const words = new Int32Array(64);

function primes(count) {
  const found = [];
  for (let number = 2; found.length < count; number += 1) {
    if (found.every((prime) => number % prime !== 0)) found.push(number);
  }
  return found;
}

function fraction(root) {
  return ((root - Math.floor(root)) * 2 ** 32) | 0;
}

/** Mixes a block of 64 bytes into the state. Plain steps, no lists: this is run a million times. */
function mix(state, bytes, at) {
  for (let round = 0; round < 16; round += 1) {
    const from = at + round * 4;
    words[round] = (bytes[from] << 24) | (bytes[from + 1] << 16) | (bytes[from + 2] << 8) | bytes[from + 3];
  }
  for (let round = 16; round < 64; round += 1) {
    const near = words[round - 2];
    const far = words[round - 15];
    const one = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
    const other = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
    words[round] = (one + words[round - 7] + other + words[round - 16]) | 0;
  }
  let a = state[0];
  let b = state[1];
  let c = state[2];
  let d = state[3];
  let e = state[4];
  let f = state[5];
  let g = state[6];
  let h = state[7];
  for (let round = 0; round < 64; round += 1) {
    const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[round] + words[round]) | 0;
    const other = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + other) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

function turned(word, by) {
  return (word >>> by) | (word << (32 - by));
}
