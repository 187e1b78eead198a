// Measures bytes and time until the page of a show is interactive.
//
// Every visit is a first one: a new browser context with an empty cache. Interactive means that a free seat
// is shown with its state from the live map and can be tapped. The benchmark also taps it and measures the
// time until it is painted as held. Bytes are those on the wire, including headers and socket frames, of
// every request that began before that moment, counted completely even if it ended later.
import { BASE, DEVICES, largestShow, launch } from "./browser.mjs";
import { Report, options } from "./report.mjs";

// Maximum seats of a room that is drawn with an element per seat.
const MOST_SEATS = 2_500;
const BUDGET_BYTES = 150_000;
// Lighthouse's settings of a phone on a slow 4G line.
const SLOW_4G = { downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8, latency: 150, offline: false };
const SLOW_CPU = 4;
const DEADLINE_MS = 60_000;

const { json, rounds, quick } = options();
const report = new Report(json);
const browser = await launch();
try {
  const rooms = { cinema: await largestShow(MOST_SEATS), arena: await largestShow(Infinity) };
  for (let round = 1; round <= rounds; round += 1) {
    for (const [room, show] of Object.entries(rooms)) {
      for (const line of quick ? ["local"] : ["local", "slow_4g"]) {
        report.round({ bench: "page", variant: "candidate", room, line, round, seats: show.seat_count, ...(await visit(show, room, line)) });
      }
    }
  }
  report.summarise();
  for (const room of Object.keys(rooms)) {
    report.promise(`bytes until the page is interactive, ${room}`, report.median({ room, line: "local" }, "transferred_bytes"), "<=", BUDGET_BYTES);
  }
  report.close();
} finally {
  await browser.close();
}

async function visit(show, room, line) {
  const context = await browser.newContext(DEVICES.phone);
  const page = await context.newPage();
  const wire = await countBytes(context, page);
  if (line === "slow_4g") {
    await wire.session.send("Network.emulateNetworkConditions", SLOW_4G);
    await wire.session.send("Emulation.setCPUThrottlingRate", { rate: SLOW_CPU });
  }
  await page.addInitScript(watchForSeats, room === "arena" ? ".section-card" : '[role="gridcell"][data-state="available"]');
  await page.goto(`${BASE}/shows/${show.id}`, { waitUntil: "commit" });
  await page.waitForFunction(() => window.interactiveAt !== undefined, undefined, { timeout: DEADLINE_MS });
  const { interactive_ms, at_ms } = await page.evaluate(() => ({ interactive_ms: window.interactiveAt, at_ms: performance.timeOrigin + window.interactiveAt }));
  wire.markInteractive(at_ms);
  const figures = { interactive_ms };
  if (room === "cinema") figures.tap_painted_ms = await tap(page);
  await wire.settled();
  const bytes = wire.bytes();
  report.printLine(`          ${Object.entries(bytes).map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
  await context.close();
  return { ...figures, transferred_bytes: Object.values(bytes).reduce((sum, count) => sum + count, 0) };
}

/** In the page: records when the first element to tap appears. */
function watchForSeats(selector) {
  const look = () => {
    if (document.querySelector(selector)) window.interactiveAt = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Taps a free seat and returns the time until the frame that shows it as held. */
async function tap(page) {
  return page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    const seat = document.querySelector('[role="gridcell"][tabindex="0"]') ?? document.querySelector('[role="gridcell"][data-state="available"]');
    const began = performance.now();
    seat.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    while (seat.dataset.state !== "mine") await frame();
    // The frame that paints the seat ends before the next task.
    await frame();
    return performance.now() - began;
  });
}

/** Counts bytes on the wire by kind. */
async function countBytes(context, page) {
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  const requests = new Map();
  let socket = 0;
  let interactive = false;
  session.on("Network.requestWillBeSent", ({ requestId, request, type, redirectResponse, wallTime }) => {
    if (interactive || redirectResponse || request.url.startsWith("data:")) return;
    requests.set(requestId, { kind: kindOf(request.url, type), began_ms: wallTime * 1000, bytes: 0, done: false });
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const request = requests.get(requestId);
    if (request) Object.assign(request, { bytes: encodedDataLength, done: true });
  });
  session.on("Network.loadingFailed", ({ requestId }) => requests.delete(requestId));
  session.on("Network.webSocketFrameReceived", ({ response }) => {
    if (!interactive) socket += response.opcode === 2 ? Buffer.byteLength(response.payloadData, "base64") : response.payloadData.length;
  });
  return {
    session,
    /** Events of the browser are delayed by milliseconds: requests that began after this moment are removed. */
    markInteractive: (at_ms) => {
      interactive = true;
      for (const [id, { began_ms }] of requests) if (began_ms > at_ms) requests.delete(id);
    },
    settled: async () => {
      const until = Date.now() + DEADLINE_MS;
      while ([...requests.values()].some((request) => !request.done) && Date.now() < until) await page.waitForTimeout(50);
    },
    bytes: () => {
      const kinds = { socket };
      for (const { kind, bytes } of requests.values()) kinds[kind] = (kinds[kind] ?? 0) + bytes;
      return kinds;
    },
  };
}

function kindOf(url, type) {
  const ending = /\.(wasm|js|css|woff2|svg)$/.exec(new URL(url).pathname)?.[1];
  return ending ?? (type === "Document" ? "html" : "api");
}
