// Two visitors in Chromium against the whole product. `cargo xtask test` starts that, and names it in
// BASE_URL, SHORT_HOLD_URL (a server whose holds last four seconds) and MAILBOX_DIR.
//
// No retries: a test that passes the second time has found something.
import { defineConfig, devices } from "@playwright/test";

const asRoot = process.getuid?.() === 0;

export default defineConfig({
  testDir: "specs",
  outputDir: "test-results",
  timeout: 60_000,
  expect: {
    timeout: 10_000,
    // What shifts, vanishes or changes colour is far above this; how a Chromium smooths its letters is below.
    toHaveScreenshot: { maxDiffPixelRatio: 0.02, threshold: 0.25, scale: "css", stylePath: "pages/pictures.css" },
  },
  // Renewed by `cargo xtask test --only-browser --renew-pictures`.
  snapshotPathTemplate: "pictures/{projectName}/{arg}{ext}",
  fullyParallel: true,
  workers: 2,
  retries: 0,
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["json"]],
  use: {
    baseURL: process.env.BASE_URL,
    // A film of every test is work for the browser, and thrown away unless it fails; the trace shows the page of each step without one.
    trace: { mode: "retain-on-failure", screenshots: false },
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: process.env.CHROMIUM,
      args: [
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        // Chromium's sandbox refuses root.
        ...(asRoot ? ["--no-sandbox"] : []),
      ],
    },
  },
  projects: [
    { name: "laptop", use: { viewport: { width: 1280, height: 800 } } },
    {
      // What depends on the room there is. The rest behaves as on a phone, which has the touch, or as on a laptop.
      name: "tablet",
      testMatch: /(areas|box-office|cancelling|door|everyone|offline|parked|reports|unusual|waiting-list)\.spec\.ts/,
      // A picture of a whole page (`fullPage`) makes the browser claim a mouse from then on: the map then begins with tiny seats.
      use: { viewport: { width: 820, height: 1180 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
    },
    {
      name: "phone",
      // Staff work at a tablet or a laptop; a waiting room is the same everywhere, and waiting takes its time.
      testIgnore: /(box-office|door|layout-editor|organiser|parked|reports|unusual|waiting-room)\.spec\.ts/,
      use: {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true,
        deviceScaleFactor: 3,
        userAgent: devices["Pixel 7"].userAgent,
      },
    },
  ],
});
