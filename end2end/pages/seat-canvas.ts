// The canvas of a large room. When a worker paints it, pixels can only be read from a copy.
import type { APIRequestContext, Page, Worker } from "@playwright/test";

import { upcomingShows } from "./catalogue.js";

const WORKER = "/pkg/overview-worker.js";

/** Returns the show in the largest room, which is painted on a canvas; shared with other tests. */
export async function largestRoomShow(request: APIRequestContext) {
  const shows = await upcomingShows(request);
  const found = shows.filter((show) => show.seat_count > 2_500).sort((one, other) => other.seat_count - one.seat_count)[0];
  if (!found) throw new Error("the demo has no arena");
  return found;
}

/** Returns the paint workers of a page. */
export function paintWorkers(page: Page): Worker[] {
  return page.workers().filter((worker) => new URL(worker.url()).pathname.endsWith(WORKER));
}

/** Returns the distinct opaque colours of the canvas, as hex. */
export async function paintedColours(page: Page): Promise<string[]> {
  return page.locator("canvas.overview-seats").evaluate((canvas: HTMLCanvasElement) => {
    // Without this option Chromium warns on the console about repeated reads.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true })!;
    copy.drawImage(canvas, 0, 0);
    const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set<string>();
    for (let at = 0; at < pixels.length; at += 4) {
      const [red, green, blue, opaque] = pixels.subarray(at, at + 4);
      if (opaque === 255) seen.add(`#${((red! << 16) | (green! << 8) | blue!).toString(16).padStart(6, "0")}`);
    }
    return [...seen].sort();
  });
}

/** Returns the size of the canvas and a checksum of its pixels. */
export async function canvasChecksum(page: Page): Promise<{ width: number; height: number; sum: number }> {
  return page.locator("canvas.overview-seats").evaluate((canvas: HTMLCanvasElement) => {
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true })!;
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    return { width, height, sum: data.reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7) };
  });
}
