// Somebody looks at another tab, and back. Here one tab is never in front of another, so the page is told so.
import { expect, type Page } from "@playwright/test";

export async function lookAway(page: Page): Promise<void> {
  await tell(page, "hidden");
}

export async function lookBack(page: Page): Promise<void> {
  await tell(page, "visible");
}

async function tell(page: Page, state: DocumentVisibilityState): Promise<void> {
  const seen = await page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
    document.dispatchEvent(new Event("visibilitychange"));
    return document.visibilityState;
  }, state);
  expect(seen).toBe(state);
}
