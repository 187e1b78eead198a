// Simulates a switch to another tab and back. In the test browser every tab is visible, so the state is overridden.
import { expect, type Page } from "@playwright/test";

export async function hideTab(page: Page): Promise<void> {
  await setVisibility(page, "hidden");
}

export async function showTab(page: Page): Promise<void> {
  await setVisibility(page, "visible");
}

async function setVisibility(page: Page, state: DocumentVisibilityState): Promise<void> {
  const visible = await page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
    document.dispatchEvent(new Event("visibilitychange"));
    return document.visibilityState;
  }, state);
  expect(visible).toBe(state);
}
