// Results of a benchmark: a JSON object a line on standard output when asked for, words on standard error.
//
// The same shape as the native benchmarks print (bench/src/report.rs): a row a round, then the median of
// every kind of row with its range, then each promise, kept or lost.
import { parseArgs } from "node:util";

/** What all benchmarks take. */
export function options() {
  const { values } = parseArgs({
    options: {
      json: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      rounds: { type: "string", default: "5" },
      where: { type: "boolean", default: false },
    },
  });
  return { json: values.json, quick: values.quick, where: values.where, rounds: values.quick ? 1 : Number(values.rounds) };
}

/** Five digits: more would be noise. */
const rounded = (value) => (Number.isInteger(value) ? value : Number(value.toPrecision(5)));

/** The middle one; of an even number, the mean of the two in the middle. */
export function median(figures) {
  const sorted = [...figures].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The figure that this share of all does not exceed. */
export function quantile(figures, share) {
  const sorted = [...figures].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}

export class Report {
  #rows = [];
  #lost = 0;

  constructor(json) {
    this.json = json;
  }

  #print(row) {
    if (this.json) console.log(JSON.stringify(row));
    const words = Object.entries(row).filter(([key]) => !["bench", "ranges", "rounds"].includes(key));
    const told = ([key, value]) => (typeof value === "string" ? value : `${key} ${value}${range(row, key)}`);
    console.error(`        ${words.map(told).join("  ")}`);
  }

  /** The results of a round. */
  round(row) {
    const figures = Object.entries(row).map(([key, value]) => [key, typeof value === "number" ? rounded(value) : value]);
    const kept = Object.fromEntries(figures);
    this.#rows.push(kept);
    this.#print(kept);
  }

  /** Says what a figure consists of. */
  list(title, parts) {
    this.say(`\n        ${title}`);
    for (const [name, figure] of parts) this.say(`        ${rounded(figure)}  ${name}`);
  }

  /** Says something for people. */
  say(words) {
    console.error(words);
  }

  /** The median and the range of every figure, for every kind of row: rows are of one kind when their words are. */
  summarise() {
    console.error("\n        medians");
    const kinds = new Map();
    for (const row of this.#rows) {
      const kind = JSON.stringify(Object.values(row).filter((value) => typeof value === "string"));
      kinds.set(kind, [...(kinds.get(kind) ?? []), row]);
    }
    for (const rows of kinds.values()) {
      const middle = { ...rows[0], round: "median", rounds: rows.length, ranges: {} };
      for (const key of Object.keys(rows[0])) {
        const figures = rows.map((row) => row[key]);
        if (key === "round" || figures.some((figure) => typeof figure !== "number")) continue;
        middle[key] = rounded(median(figures));
        if (Math.max(...figures) > Math.min(...figures)) middle.ranges[key] = [Math.min(...figures), Math.max(...figures)];
      }
      this.#print(middle);
    }
  }

  /** The median of a figure over the rows that have these words. */
  median(words, key) {
    const fits = (row) => Object.entries(words).every(([word, value]) => row[word] === value);
    return median(this.#rows.filter(fits).map((row) => row[key]));
  }

  /** Compares a figure with what was promised; `sign` is "<=" or ">=". */
  promise(what, found, sign, limit) {
    const kept = sign === "<=" ? found <= limit : found >= limit;
    this.#lost += kept ? 0 : 1;
    if (this.json) console.log(JSON.stringify({ promise: what, found: rounded(found), bound: `${sign} ${limit}`, kept }));
    console.error(`  ${kept ? "kept" : "LOST"}  ${what}: ${rounded(found)} (promised ${sign} ${limit})`);
  }

  close() {
    console.error(`\n  ${this.#lost} promises are lost.`);
  }
}

function range(row, key) {
  const found = row.ranges?.[key];
  return found ? ` [${found[0]} to ${found[1]}]` : "";
}
