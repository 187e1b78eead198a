// A simulated camera that shows a ticket, in a browser without a barcode reader.
import { type BrowserContext, expect, type Page, request as requests } from "@playwright/test";

/** Removes the barcode detector from all later pages of this browser, as on iPhones and in Firefox. */
export async function removeBarcodeDetector(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => Reflect.deleteProperty(globalThis, "BarcodeDetector"));
}

/** The QR code of a ticket as its page draws it: side in modules, and SVG path of the dark modules. */
export interface QrCode {
  side: number;
  dark: string;
}

/** Reads the QR code from the page of a ticket. */
export async function readQrCode(code: string): Promise<QrCode> {
  const look = await requests.newContext({ baseURL: process.env.BASE_URL });
  const page = await (await look.get(`/tickets/${code}`)).text();
  await look.dispose();
  const drawn = /viewBox="0 0 (\d+) \1"[^>]*>\s*<rect [^>]*><path d="([^"]+)" fill="#000"/.exec(page);
  expect(drawn, "a ticket has a QR code").not.toBeNull();
  return { side: Number(drawn?.[1]), dark: drawn?.[2] ?? "" };
}

/** Gives the page of a door a camera that shows this code until the page has an answer. */
export async function showToCamera(page: Page, code: QrCode): Promise<void> {
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
      // A canvas sends frames only when it is drawn on.
      setInterval(draw, 100);
      return Promise.resolve(seen.captureStream());
    };
  }, code);
}
