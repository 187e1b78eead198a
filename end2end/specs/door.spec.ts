// Admission at the door: two hundred scans, an outage of the network, a second device.
import type { Page } from "@playwright/test";

import { NetworkProxy } from "../pages/network-proxy.js";
import { showToCamera, readQrCode, removeBarcodeDetector } from "../pages/camera.js";
import { claimShow } from "../pages/catalogue.js";
import { buyTickets, Door } from "../pages/door.js";
import { expectAccessible } from "../pages/accessibility.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

// Admission opens this many hours before a show.
const TONIGHT = { minSeats: 150, startsWithinHours: 17 };
// Leaves the larger rooms to the other tests.
const SMALL_TONIGHT = { maxSeats: 149, startsWithinHours: 17 };

/** Returns a code with an invalid check. */
function forged(code: string): string {
  return code.slice(0, -1) + (code.endsWith("7") ? "8" : "7");
}

test("two hundred scans, an outage, and a ticket admitted by two devices", async ({ request, anna, ben }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  test.setTimeout(120_000);
  const show = await claimShow(request, [], TONIGHT);
  const tickets = await buyTickets(show, 100);
  const [online, apart] = [tickets.slice(0, 70), tickets.slice(70)];
  await signInAsManager(anna.page);
  await signInAsManager(ben.page);
  const [left, right] = [new Door(anna.page), new Door(ben.page)];
  await left.open(show);
  await right.open(show);

  // 130 scans: 70 valid tickets, 40 copies, 20 forged codes.
  await left.scanAll(online);
  await left.expectAnswer("good", "Checked in");
  await left.expectAdmitted(70);
  await left.scanAll(online.slice(0, 40));
  await left.expectAnswer("bad", "Already used");
  await left.scanAll(online.slice(0, 20).map(forged));
  await left.expectAnswer("bad", "Not a genuine ticket");
  await left.expectAdmitted(70);
  await left.scan("4006381333931");
  await left.expectAnswer("bad", "Not a ticket");

  // Offline: 29 tickets are admitted by the stored list; copies and unknown codes are not.
  anna.allowNetworkErrors();
  await anna.context.setOffline(true);
  await left.expectLink("down");
  await left.scanAll(apart.slice(0, 29));
  await left.expectAnswer("good", "Checked in");
  await left.expectWaiting(29);
  await left.expectAdmitted(99);
  await left.scanAll(apart.slice(0, 20));
  await left.expectAnswer("bad", "Already used");
  await left.scanAll(online.slice(40, 50));
  await left.expectAnswer("bad", "Already used");
  await left.scanAll(apart.slice(0, 10).map(forged));
  await left.expectAnswer("unsure", /list/);

  // An online device admits one of them as well.
  await right.scan(apart[0] ?? "");
  await right.expectAnswer("good", "Checked in");

  // Online again: the scans are synchronised, and both devices report the conflict.
  await anna.context.setOffline(false);
  await left.expectLink("up");
  await left.expectWaiting(0);
  await left.expectAdmitted(99);
  await right.expectAdmitted(99);
  for (const door of [left, right]) {
    await expect(door.conflicts()).toHaveCount(1);
    await expect(door.conflicts()).toContainText((apart[0] ?? "").slice(-4));
  }
  // The 200th scan.
  await left.scan(tickets[99] ?? "");
  await left.expectAnswer("good", "Checked in");
  await left.expectAdmitted(100);
});

test("a group ticket, an undo with a reason, and accessible states of the scanner", async ({ request, newVisitor }) => {
  test.setTimeout(90_000);
  const anna = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, [], TONIGHT);
  const [first, ...others] = await buyTickets(show, 4);
  await signInAsManager(anna.page);
  const door = new Door(anna.page);
  await door.open(show);
  await expectAccessible(anna.page, "a door that waits");
  await door.scan(first ?? "");
  await door.expectAnswer("good", "Checked in");
  await expectAccessible(anna.page, "a ticket that is good");
  await anna.page.locator("#door-code").focus();
  await door.scan(`ROWLOCK1|${[first, ...others].join(",")}|4 tickets|Anna`);
  await door.expectAnswer("partly", "3 of 4 checked in");

  // By keyboard only.
  await anna.page.getByTestId("door-undo").first().focus();
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.locator("#door-reason")).toBeFocused();
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.locator("#door-reason-error")).not.toBeEmpty();
  // The button leads to the field as well.
  await press(anna.page.getByTestId("door-undo-confirm"));
  await expect(anna.page.locator("#door-reason")).toBeFocused();
  await anna.page.keyboard.insertText("They went out again");
  await expectAccessible(anna.page, "an admission to be undone");
  await anna.page.locator("#door-reason").focus();
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.getByTestId("door-undo-form")).toHaveCount(0);
  await door.expectAdmitted(1);
  await expect(anna.page.locator("#door-code")).toBeFocused();
  await door.scan(others[0] ?? "");
  await door.expectAnswer("good", "Checked in");
  // Only the last scan can be undone.
  await expect(anna.page.getByTestId("door-undo")).toHaveCount(1);
  await press(anna.page.getByTestId("door-check"));
  await expect(anna.page.locator("#door-code")).toBeFocused();

  // After a reload the history is empty; scanning the ticket leads to its admission.
  await door.reload();
  await expect(anna.page.getByTestId("door-undo")).toHaveCount(0);
  await door.scan(others[0] ?? "");
  await door.expectAnswer("bad", "Already used");
  await press(anna.page.getByTestId("door-undo"));
  await anna.page.locator("#door-reason").fill("Went to the wrong screen");
  await press(anna.page.getByTestId("door-undo-confirm"));
  await expect(anna.page.getByTestId("door-undo-form")).toHaveCount(0);
  await expect(anna.page.getByTestId("door-undo")).toHaveCount(0);
  await expect(anna.page.locator("#door-code")).toBeFocused();
  await door.scan(others[0] ?? "");
  await door.expectAnswer("good", "Checked in");

  // After every other control the scanner types into the code field again.
  for (const isOn of ["true", "false"]) {
    await press(anna.page.getByTestId("door-sound"));
    await expect(anna.page.getByTestId("door-sound")).toHaveAttribute("aria-pressed", isOn);
    await door.expectReadyToScan();
  }
  const name = anna.page.locator("#door-device");
  await name.fill("Left door");
  await anna.page.keyboard.press("Enter");
  await door.expectReadyToScan();
  // A ticket scanned into the name is not a name, and is not checked.
  await name.focus();
  await door.scan(`ROWLOCK1|${first}|C7|Anna`);
  await door.expectAnswer("unsure", "Cannot be checked right now");
  await expect(name).toHaveValue("Left door");
  await door.expectReadyToScan();
  await name.fill(" ");
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.locator("#door-device-error")).not.toBeEmpty();
  await expect(name).toBeFocused();
});

/** Expects that the worker prefers cached files when a replica of another version lacks them. */
async function expectCachedFilesOnVersionMismatch(page: Page): Promise<void> {
  const ask = (file: string, control: string) =>
    page.evaluate(
      async ([path = "", control = ""]) => {
        const [name = ""] = await caches.keys();
        const cache = await caches.open(name);
        await cache.put(path, new Response("a copy", { headers: { "cache-control": control } }));
        const answer = await fetch(path);
        await cache.delete(path);
        return (await answer.text()) === "a copy";
      },
      [`/site/00000000000000ff/${file}`, control],
    );
  expect(await ask("pkg/staff.js", "public, max-age=31536000, immutable")).toBe(true);
  expect(await ask("style/main.css", "public, max-age=31536000, immutable")).toBe(true);
  expect(await ask("pkg/staff.js", "private, no-store"), "the server has no such module").toBe(true);
  expect(await ask("style/main.css", "private, no-store"), "the server has a style").toBe(false);
}

test("a scanner reloaded offline continues with its list, returns after a sign-in, and sign-out deletes the list", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  test.setTimeout(90_000);
  const show = await claimShow(request, [], TONIGHT);
  const [first = "", second = "", third = ""] = await buyTickets(show, 3);
  const code = await readQrCode(third);
  await removeBarcodeDetector(anna.context);
  const proxy = await NetworkProxy.start();
  // All pages through the proxy: a browser may request the icon of a page it has just left.
  await signInAsManager(anna.page, proxy.url);
  const door = new Door(anna.page);
  await door.open(show, proxy.url);
  await expect(anna.page.getByTestId("door-kept")).toContainText("offline");
  await expectCachedFilesOnVersionMismatch(anna.page);
  await door.scan(first);
  await door.expectAnswer("good", "Checked in");

  anna.allowNetworkErrors();
  await proxy.disconnect();
  await door.reload();
  await door.expectLink("down");
  await expect(anna.page.getByTestId("door-bar")).toContainText("Opened offline");
  await door.scan(first);
  await door.expectAnswer("bad", "Already used");
  await door.scan(second);
  await door.expectAnswer("good", "Checked in");
  await door.expectWaiting(1);
  // After another reload a second admission is refused. The camera's reader is cached, although unused so far.
  await door.reload();
  await door.expectWaiting(1);
  await door.scan(second);
  await door.expectAnswer("bad", "Already used");
  await showToCamera(anna.page, code);
  await door.scanWithCamera();
  await door.expectAnswer("good", "Checked in");
  await door.expectWaiting(2);

  // Only this page and its files are cached.
  const cachedPaths = () =>
    anna.page.evaluate(async () => {
      const names = await caches.keys();
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return requests.flat().map((request) => new URL(request.url).pathname);
    });
  for (const file of await cachedPaths()) {
    expect(file).toMatch(
      /^\/(staff\/[\w-]+\/door\/[0-9a-f-]{36}|site\/[0-9a-f]{16}\/((style|fonts)\/[\w.-]+|pkg\/[\w/-]+\.(js|wasm))|favicon\.svg)$/,
    );
    expect(file).not.toMatch(/\/pkg\/(show|pages)/);
  }
  for (const other of [`/staff/${show.theatre}/door`, `/staff/${show.theatre}/reports`, `/shows/${show.id}`]) {
    const tab = await anna.newTab();
    await expect(tab.page.goto(proxy.url + other)).rejects.toThrow(/ERR_CONNECTION_REFUSED/);
    await tab.page.close();
  }

  // The session has ended: staff sign in and return to this door.
  await anna.context.clearCookies();
  await proxy.reconnect();
  await door.expectLink("signed-out");
  await door.expectWaiting(2);
  await door.signInAgain(show);
  await expect(anna.page.getByTestId("door-kept")).toContainText("offline");
  await door.expectLink("up");
  await door.expectWaiting(0);
  await door.expectAdmitted(3);
  await anna.page.goto(`${proxy.url}/account`);
  await press(anna.page.getByTestId("sign-out"));
  await anna.page.waitForURL((url) => url.pathname === "/");
  await expect.poll(cachedPaths).toEqual([]);
});

test("two doors open offline on one device, and each sends the scans of both", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  test.setTimeout(90_000);
  const early = await claimShow(request, [], SMALL_TONIGHT);
  const late = await claimShow(request, [], SMALL_TONIGHT);
  const [forEarly = ""] = await buyTickets(early, 1);
  const [forLate = ""] = await buyTickets(late, 1);
  const proxy = await NetworkProxy.start();
  await signInAsManager(anna.page, proxy.url);
  const door = new Door(anna.page);
  for (const show of [early, late]) {
    await door.open(show, proxy.url);
    await expect(anna.page.getByTestId("door-kept")).toContainText("offline");
  }

  anna.allowNetworkErrors();
  await proxy.disconnect();
  await door.openByAddress(early, proxy.url);
  await door.expectLink("down");
  await door.scan(forEarly);
  await door.expectAnswer("good", "Checked in");
  await door.expectWaiting(1);
  await door.openByAddress(late, proxy.url);
  await door.expectWaiting(0);
  await door.expectWaitingElsewhere(1);
  await door.scan(forLate);
  await door.expectAnswer("good", "Checked in");
  await door.expectWaiting(1);
  // The first door still has its list, with the admission.
  await door.openByAddress(early, proxy.url);
  await door.expectWaitingElsewhere(1);
  await door.scan(forEarly);
  await door.expectAnswer("bad", "Already used");
  await door.openByAddress(late, proxy.url);

  await proxy.reconnect();
  await door.expectLink("up");
  await door.expectWaiting(0);
  await door.expectWaitingElsewhere(0);
  // Only the page of the second show was open.
  for (const show of [early, late]) {
    const answer = await anna.page.request.get(`${proxy.url}/api/v1/theatres/${show.theatre}/door/shows/${show.id}`);
    const { counts } = (await answer.json()) as { counts: { admitted: number } };
    expect(counts.admitted).toBe(1);
  }
  await door.openByAddress(early, proxy.url);
  await door.expectWaiting(0);
  await door.expectAdmitted(1);
});

test("signing out asks before it deletes unsent scans of a door", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  const show = await claimShow(request, [], TONIGHT);
  const [ticket = ""] = await buyTickets(show, 1);
  await signInAsManager(anna.page);
  const door = new Door(anna.page);
  await door.open(show);
  anna.allowNetworkErrors();
  await anna.context.setOffline(true);
  await door.expectLink("down");
  await door.scan(ticket);
  await door.expectAnswer("good", "Checked in");
  await door.expectWaiting(1);
  // The tab is closed before the network is back.
  await anna.page.close();
  await anna.context.setOffline(false);

  const { page } = await anna.newTab();
  const questions: string[] = [];
  page.on("dialog", (dialog) => {
    questions.push(dialog.message());
    void dialog.dismiss();
  });
  await page.goto("/account");
  await press(page.getByTestId("sign-out"));
  await expect.poll(() => questions).toEqual([expect.stringContaining("Offline scans")]);
  await expect(page).toHaveURL(/\/account$/);

  // The door sends them. Then nothing is left to ask about.
  const again = new Door(page);
  await again.open(show);
  await again.expectWaiting(0);
  await again.expectAdmitted(1);
  await page.goto("/account");
  await press(page.getByTestId("sign-out"));
  await page.waitForURL((url) => url.pathname === "/");
  expect(questions).toHaveLength(1);
});

test("the camera reads tickets in a browser without a barcode detector", async ({ request, anna }) => {
  const show = await claimShow(request, [], TONIGHT);
  const [first = ""] = await buyTickets(show, 1);
  const code = await readQrCode(first);
  await removeBarcodeDetector(anna.context);
  await signInAsManager(anna.page);
  const door = new Door(anna.page);
  await door.open(show);
  const asked = () =>
    anna.page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("split_reader")).length);
  expect(await asked(), "the camera is unused").toBe(0);
  await showToCamera(anna.page, code);
  await door.scanWithCamera();
  await door.expectAnswer("good", "Checked in");
  expect(await asked()).toBeGreaterThan(0);
  // The same ticket again, with a new camera stream.
  await showToCamera(anna.page, code);
  await door.scanWithCamera();
  await door.expectAnswer("bad", "Already used");
});
