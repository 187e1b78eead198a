// The canvas of a large room. A worker may paint on it: then the element itself says nothing of its pixels, a copy does.
import type { APIRequestContext, Page, Worker } from "@playwright/test";

import { showsToCome } from "./catalogue.js";

const WORKER = "/pkg/overview-worker.js";

/** The show in the largest room, which has too many seats to be drawn whole; others may use it. */
export async function arena(request: APIRequestContext) {
  const shows = await showsToCome(request);
  const found = shows.filter((show) => show.seat_count > 2_500).sort((one, other) => other.seat_count - one.seat_count)[0];
  if (!found) throw new Error("the demo has no arena");
  return found;
}

/** The workers that paint on this page. */
export function painters(page: Page): Worker[] {
  return page.workers().filter((worker) => new URL(worker.url()).pathname.endsWith(WORKER));
}

/** The colours on the canvas of a large room, each once, as the style spells them. */
export async function paintedColours(page: Page): Promise<string[]> {
  return page.locator("canvas.overview-seats").evaluate((canvas: HTMLCanvasElement) => {
    // A canvas that is read again and again says so on the console.
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

/** How large its picture is, and a sum over all of its pixels. */
export async function pictureOf(page: Page): Promise<{ width: number; height: number; sum: number }> {
  return page.locator("canvas.overview-seats").evaluate((canvas: HTMLCanvasElement) => {
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true })!;
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    return { width, height, sum: data.reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7) };
  });
}
