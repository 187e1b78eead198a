// A camera that sees a ticket, in a browser that reads no codes itself.
import { type BrowserContext, expect, type Page, request as requests } from "@playwright/test";

/** From now on the pages of this browser have no reader of their own, as on iPhones and in Firefox. */
export async function withoutReader(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => Reflect.deleteProperty(globalThis, "BarcodeDetector"));
}

/** The QR code of a ticket as its page draws it: its side in modules, and what is dark. */
export interface QrCode {
  side: number;
  dark: string;
}

/** Reads that from the page of a ticket. */
export async function qrOf(code: string): Promise<QrCode> {
  const look = await requests.newContext({ baseURL: process.env.BASE_URL });
  const page = await (await look.get(`/tickets/${code}`)).text();
  await look.dispose();
  const drawn = /viewBox="0 0 (\d+) \1"[^>]*>\s*<rect [^>]*><path d="([^"]+)" fill="#000"/.exec(page);
  expect(drawn, "a ticket has a QR code").not.toBeNull();
  return { side: Number(drawn?.[1]), dark: drawn?.[2] ?? "" };
}

/** Gives the page of a door a camera before which this code is held until there is an answer. */
export async function hold(page: Page, code: QrCode): Promise<void> {
  await page.evaluate(({ side, dark }) => {
    const answer = document.querySelector<HTMLElement>('[data-testid="door-answer"]');
    const before = answer?.dataset.number;
    const seen = document.createElement("canvas");
    [seen.width, seen.height] = [640, 480];
    const brush = seen.getContext("2d") as CanvasRenderingContext2D;
    const draw = () => {
      brush.resetTransform();
      brush.fillStyle = "#ddd";
      brush.fillRect(0, 0, seen.width, seen.height);
      if (answer?.dataset.number !== before) return;
      brush.translate(140, 60);
      brush.scale(360 / side, 360 / side);
      brush.fillStyle = "#fff";
      brush.fillRect(0, 0, side, side);
      brush.fillStyle = "#111";
      brush.fill(new Path2D(dark));
    };
    navigator.mediaDevices.getUserMedia = () => {
      draw();
      // A canvas that is not drawn on sends no pictures.
      setInterval(draw, 100);
      return Promise.resolve(seen.captureStream());
    };
  }, code);
}
