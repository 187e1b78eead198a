// The measured browser and its shows.
import { chromium } from "@playwright/test";

import { LAUNCH_OPTIONS } from "../chromium.mjs";

const HOUR_MS = 3_600_000;
const DAYS_AHEAD = 6;
// Sales of a show that begins sooner could close during a run.
const STARTS_IN_AT_LEAST_MS = 3 * HOUR_MS;

export const BASE = process.env.BASE_URL;

/** Starts Chromium as the tests do. */
export function launch() {
  return chromium.launch(LAUNCH_OPTIONS);
}

/** Emulated devices. */
export const DEVICES = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 3 },
  laptop: { viewport: { width: 1280, height: 800 } },
};

/** Returns the upcoming show with the largest room of at most `most` seats. */
export async function largestShow(most) {
  const found = [];
  for (let day = 0; day <= DAYS_AHEAD; day += 1) {
    const date = new Date(Date.now() + day * 24 * HOUR_MS).toISOString().slice(0, 10);
    const answer = await fetch(`${BASE}/api/v1/shows?date=${date}`);
    if (!answer.ok) throw new Error(`the shows of ${date}: ${answer.status}`);
    found.push(...(await answer.json()).shows);
  }
  const open = found.filter((show) => show.starts_at_ms > Date.now() + STARTS_IN_AT_LEAST_MS && show.seat_count <= most);
  const largest = open.sort((one, other) => other.seat_count - one.seat_count)[0];
  if (!largest) throw new Error(`the demo has no show of at most ${most} seats`);
  return largest;
}
