// Breaks down the time of a turn: self times of Chromium's events, by thread.
//
// `Performance.getMetrics` sums only the main thread, without a breakdown. A trace has the events of every thread with
// their durations. Tracing has a cost, so it has a separate turn.

// Trace categories: tasks of every thread, and their parts.
const CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "cc", "blink", "viz", "v8"];
const SHOWN = Number(process.env.SHOWN ?? 14);

/** Runs `turn` under a trace. Returns self times in milliseconds as `thread: name`, longest first. */
export async function trace(browser, page, turn) {
  await browser.startTracing(page, { categories: CATEGORIES });
  let bytes;
  try {
    await turn();
  } finally {
    bytes = await browser.stopTracing();
  }
  return selfTimes(JSON.parse(bytes.toString()).traceEvents);
}

function selfTimes(events) {
  const threads = new Map();
  for (const { name, pid, tid, args } of events) if (name === "thread_name") threads.set(`${pid}:${tid}`, args.name);
  const byThread = new Map();
  for (const event of events) {
    if (event.ph !== "X") continue;
    const key = `${event.pid}:${event.tid}`;
    if (!byThread.has(key)) byThread.set(key, []);
    byThread.get(key).push(event);
  }
  const sums = new Map();
  for (const [key, list] of byThread) {
    list.sort((one, other) => one.ts - other.ts || (other.dur ?? 0) - (one.dur ?? 0));
    const open = [];
    for (const event of list) {
      while (open.length && open.at(-1).ts + open.at(-1).dur <= event.ts) open.pop();
      const own = `${threads.get(key) ?? key}: ${event.name}`;
      const add = (name, us) => sums.set(name, (sums.get(name) ?? 0) + us / 1000);
      add(own, event.tdur ?? event.dur ?? 0);
      const parent = open.at(-1);
      if (parent) add(`${threads.get(key) ?? key}: ${parent.name}`, -(event.tdur ?? event.dur ?? 0));
      open.push({ ts: event.ts, dur: event.dur ?? 0, name: event.name });
    }
  }
  for (const [name, ms] of [...sums]) {
    const all = `${name.slice(0, name.indexOf(":"))}: in all`;
    sums.set(all, (sums.get(all) ?? 0) + ms);
  }
  return [...sums].sort((one, other) => other[1] - one[1]).slice(0, SHOWN);
}
