// Results of a benchmark: text on standard error, and with `--json` one JSON object a line on standard output.
//
// The same format as that of the native benchmarks (bench/src/report.rs): a row per round, then medians with
// ranges per group of rows, then each promise as kept or lost.
import { parseArgs } from "node:util";

/** Parses the options of all benchmarks. */
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

/** Rounds to five digits: more would be noise. */
const rounded = (value) => (Number.isInteger(value) ? value : Number(value.toPrecision(5)));

/** Returns the median; for an even count, the mean of the two middle figures. */
export function median(figures) {
  const sorted = [...figures].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns the quantile `share`. */
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
    const entries = Object.entries(row).filter(([key]) => !["bench", "ranges", "rounds"].includes(key));
    const text = ([key, value]) => (typeof value === "string" ? value : `${key} ${value}${range(row, key)}`);
    console.error(`        ${entries.map(text).join("  ")}`);
  }

  /** Prints and keeps the results of a round. */
  round(row) {
    const figures = Object.entries(row).map(([key, value]) => [key, typeof value === "number" ? rounded(value) : value]);
    const kept = Object.fromEntries(figures);
    this.#rows.push(kept);
    this.#print(kept);
  }

  /** Prints the parts of a figure. */
  list(title, parts) {
    this.printLine(`\n        ${title}`);
    for (const [name, figure] of parts) this.printLine(`        ${rounded(figure)}  ${name}`);
  }

  /** Prints a line on standard error. */
  printLine(line) {
    console.error(line);
  }

  /** Prints median and range of every figure per group of rows; the rows of a group have equal texts. */
  summarise() {
    console.error("\n        medians");
    const groups = new Map();
    for (const row of this.#rows) {
      const group = JSON.stringify(Object.values(row).filter((value) => typeof value === "string"));
      groups.set(group, [...(groups.get(group) ?? []), row]);
    }
    for (const rows of groups.values()) {
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

  /** Returns the median of a figure over the rows with these values. */
  median(values, key) {
    const matches = (row) => Object.entries(values).every(([name, value]) => row[name] === value);
    return median(this.#rows.filter(matches).map((row) => row[key]));
  }

  /** Compares a figure with the promised bound and prints the result; `sign` is "<=" or ">=". */
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
