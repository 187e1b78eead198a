// Browser tests in Chromium against the whole product. `cargo xtask test` starts it and sets BASE_URL,
// SHORT_HOLD_URL (a server with holds of four seconds) and MAILBOX_DIR.
//
// No retries: a flaky test has found a defect.
import { defineConfig, devices } from "@playwright/test";

import { LAUNCH_OPTIONS } from "./chromium.mjs";

export default defineConfig({
  testDir: "specs",
  outputDir: "test-results",
  timeout: 60_000,
  expect: {
    timeout: 10_000,
    // A moved, missing or recoloured element is far above these limits; a difference in font smoothing is below.
    toHaveScreenshot: { maxDiffPixelRatio: 0.02, threshold: 0.25, scale: "css", stylePath: "pages/pictures.css" },
  },
  // Updated by `cargo xtask test --only-browser --renew-pictures`.
  snapshotPathTemplate: "pictures/{projectName}/{arg}{ext}",
  fullyParallel: true,
  workers: Number(process.env.BROWSER_WORKERS ?? 2),
  retries: 0,
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["json"]],
  use: {
    baseURL: process.env.BASE_URL,
    // The trace of a failed test lists its steps. Recording the page of each step takes a large part of the time:
    // `cargo xtask test --only-browser --trace "words"` does.
    trace: { mode: "retain-on-failure", screenshots: false, snapshots: false },
    screenshot: "only-on-failure",
    launchOptions: LAUNCH_OPTIONS,
  },
  projects: [
    { name: "laptop", use: { viewport: { width: 1280, height: 800 } } },
    {
      // Stories that depend on the screen size. The others behave as on a phone (touch) or as on a laptop.
      name: "tablet",
      testMatch: /(accessibility|areas|box-office|cancelling|door|manager-pins|offline|parked|reports|unusual|waiting-list)\.spec\.ts/,
      // A `fullPage` screenshot makes the browser report a mouse from then on: the map then starts with tiny seats.
      // One pixel per CSS pixel: the browser draws in software, and no story depends on more of them.
      use: { viewport: { width: 820, height: 1180 }, hasTouch: true, isMobile: true, deviceScaleFactor: 1 },
    },
    {
      name: "phone",
      // Staff use a tablet or a laptop; a waiting room is the same on every device, and its stories take long.
      testIgnore: /(box-office|door|layout-editor|manager-pins|organiser|parked|rehearsal|reports|unusual|waiting-room)\.spec\.ts/,
      use: {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true,
        // Phones have three; two are drawn in half the time.
        deviceScaleFactor: 2,
        userAgent: devices["Pixel 7"].userAgent,
      },
    },
  ],
});
