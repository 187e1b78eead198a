// Worker that solves the proof-of-work puzzle for seats in high demand: it finds a number such that the SHA-256 of the
// challenge and the number starts with the required zero bits (docs/api.md). It is loaded when the server sends a puzzle.
//
// It has its own SHA-256 (FIPS 180-4): the browser's returns a promise per hash, which is far slower, and needs TLS.
// The whole 64-byte blocks of the challenge are hashed once for all attempts.

// Maximum difficulty. A puzzle takes 2^18 attempts on average; it exceeds the maximum with probability e^-64.
const MAX_BITS = 18;
const MAX_ATTEMPTS = 64 * 2 ** MAX_BITS;
// Upper bound for the length of a challenge.
const MAX_BYTES = 1_024;

self.onmessage = ({ data }) => {
  // null: there is no solution, and the page shows that.
  self.postMessage(typeof data === "string" ? solve(data) : null);
};

/** Returns the first solution; null for an invalid challenge or if all attempts fail. */
function solve(challenge) {
  const bits = Number.parseInt(challenge, 10);
  const front = new TextEncoder().encode(`${challenge}-`);
  if (!(bits >= 0 && bits <= MAX_BITS) || front.length > MAX_BYTES) return null;
  const whole = front.length - (front.length % 64);
  const prefixState = Int32Array.from(FIRST);
  for (let at = 0; at < whole; at += 64) mix(prefixState, front, at);
  const rest = front.subarray(whole);
  const state = new Int32Array(8);
  for (let number = 0; number < MAX_ATTEMPTS; number += 1) {
    const tail = lastBlocks(rest, String(number), front.length);
    state.set(prefixState);
    for (let at = 0; at < tail.length; at += 64) mix(state, tail, at);
    if (Math.clz32(state[0]) >= bits) return `${challenge}-${number}`;
  }
  return null;
}

const tails = [new Uint8Array(64), new Uint8Array(128)];

/** Returns the last blocks of a message: the rest of the challenge, the number and the padding. */
function lastBlocks(rest, number, before) {
  const length = rest.length + number.length;
  const tail = tails[length + 9 > 64 ? 1 : 0];
  tail.fill(0);
  tail.set(rest);
  for (let digit = 0; digit < number.length; digit += 1) tail[rest.length + digit] = number.charCodeAt(digit);
  tail[length] = 0x80;
  // Length of the message in bits, always below 2^16 here.
  const bits = (before + number.length) * 8;
  tail[tail.length - 2] = bits >>> 8;
  tail[tail.length - 1] = bits;
  return tail;
}

// Constants of SHA-256: the first 32 bits of the fractional parts of the square roots of the first 8 primes, and of the
// cube roots of the first 64.
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

/** Mixes a block of 64 bytes into the state. Allocates nothing, because it runs a million times. */
function mix(state, bytes, at) {
  for (let round = 0; round < 16; round += 1) {
    const from = at + round * 4;
    words[round] = (bytes[from] << 24) | (bytes[from + 1] << 16) | (bytes[from + 2] << 8) | bytes[from + 3];
  }
  for (let round = 16; round < 64; round += 1) {
    const near = words[round - 2];
    const far = words[round - 15];
    const one = rotateRight(near, 17) ^ rotateRight(near, 19) ^ (near >>> 10);
    const other = rotateRight(far, 7) ^ rotateRight(far, 18) ^ (far >>> 3);
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
    const one = (h + (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[round] + words[round]) | 0;
    const other = ((rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
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

function rotateRight(word, by) {
  return (word >>> by) | (word << (32 - by));
}
