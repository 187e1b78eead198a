// The door: two hundred scans by a reader that types, a network that goes away, a second device meanwhile.
import type { Page } from "@playwright/test";

import { Cable } from "../pages/cable.js";
import { hold, qrOf, withoutReader } from "../pages/camera.js";
import { claimShow } from "../pages/catalogue.js";
import { buyTickets, Door } from "../pages/door.js";
import { expectForEveryone } from "../pages/everyone.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

// The door of a show opens so long before it.
const TONIGHT = { leastSeats: 150, startsWithinHours: 17 };

/** A code like ours that we never signed. */
function forged(code: string): string {
  return code.slice(0, -1) + (code.endsWith("7") ? "8" : "7");
}

test("two hundred scans, a lost connection, and a ticket that another device let in meanwhile", async ({ request, anna, ben }) => {
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

  // 70 come in, 40 of them hand their ticket to a friend outside, 20 friends made one up: 130 scans.
  await left.scanAll(online);
  await left.expectAnswer("good", "Come in");
  await left.expectAdmitted(70);
  await left.scanAll(online.slice(0, 40));
  await left.expectAnswer("bad", "Used already");
  await left.scanAll(online.slice(0, 20).map(forged));
  await left.expectAnswer("bad", "Not a genuine ticket");
  await left.expectAdmitted(70);
  await left.scan("4006381333931");
  await left.expectAnswer("bad", "Not a ticket");

  // The network goes. 29 come in by the list; copies and strangers do not.
  anna.mayBeCutOff();
  await anna.context.setOffline(true);
  await left.expectLink("down");
  await left.scanAll(apart.slice(0, 29));
  await left.expectAnswer("good", "Come in");
  await left.expectWaiting(29);
  await left.expectAdmitted(99);
  await left.scanAll(apart.slice(0, 20));
  await left.expectAnswer("bad", "Used already");
  await left.scanAll(online.slice(40, 50));
  await left.expectAnswer("bad", "Used already");
  await left.scanAll(apart.slice(0, 10).map(forged));
  await left.expectAnswer("unsure", /list/);

  // Meanwhile another device, which has a network, lets one of them in as well.
  await right.scan(apart[0] ?? "");
  await right.expectAnswer("good", "Come in");

  // Back again: all of it is settled, and both doors hear of the one.
  await anna.context.setOffline(false);
  await left.expectLink("up");
  await left.expectWaiting(0);
  await left.expectAdmitted(99);
  await right.expectAdmitted(99);
  for (const door of [left, right]) {
    await expect(door.conflicts()).toHaveCount(1);
    await expect(door.conflicts()).toContainText((apart[0] ?? "").slice(-4));
  }
  // The two hundredth.
  await left.scan(tickets[99] ?? "");
  await left.expectAnswer("good", "Come in");
  await left.expectAdmitted(100);
});

test("a party, an undo with a reason, and what the door looks like", async ({ request, newVisitor }) => {
  test.setTimeout(90_000);
  const anna = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, [], TONIGHT);
  const [first, ...others] = await buyTickets(show, 4);
  await signInAsManager(anna.page);
  const door = new Door(anna.page);
  await door.open(show);
  await expectForEveryone(anna.page, "a door that waits");
  await door.scan(first ?? "");
  await door.expectAnswer("good", "Come in");
  await expectForEveryone(anna.page, "a ticket that is good");
  await anna.page.locator("#door-code").focus();
  await door.scan(`ROWLOCK1|${[first, ...others].join(",")}|4 tickets|Anna`);
  await door.expectAnswer("partly", "3 of 4 come in");

  // By the keyboard alone.
  await anna.page.getByTestId("door-undo").first().focus();
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.locator("#door-reason")).toBeFocused();
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.locator("#door-reason-error")).not.toBeEmpty();
  await anna.page.keyboard.insertText("They went out again");
  await expectForEveryone(anna.page, "an admission to be undone");
  await anna.page.locator("#door-reason").focus();
  await anna.page.keyboard.press("Enter");
  await expect(anna.page.getByTestId("door-undo-form")).toHaveCount(0);
  await door.expectAdmitted(1);
  await expect(anna.page.locator("#door-code")).toBeFocused();
  await door.scan(others[0] ?? "");
  await door.expectAnswer("good", "Come in");
  await press(anna.page.getByTestId("door-check"));
  await expect(anna.page.locator("#door-code")).toBeFocused();

  // Opened anew there is nothing to look back at: the ticket itself leads to what it was used by.
  await door.reload();
  await expect(anna.page.getByTestId("door-undo")).toHaveCount(0);
  await door.scan(others[0] ?? "");
  await door.expectAnswer("bad", "Used already");
  await press(anna.page.getByTestId("door-undo"));
  await anna.page.locator("#door-reason").fill("Went to the wrong screen");
  await press(anna.page.getByTestId("door-undo-confirm"));
  await expect(anna.page.getByTestId("door-undo-form")).toHaveCount(0);
  await expect(anna.page.getByTestId("door-undo")).toHaveCount(0);
  await expect(anna.page.locator("#door-code")).toBeFocused();
  await door.scan(others[0] ?? "");
  await door.expectAnswer("good", "Come in");
});

/** A replica of another version answers for files of this one's, where the set has a copy of them. */
async function expectKeptFilesToDo(page: Page): Promise<void> {
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

test("a door that is loaded anew without a network goes on by its list, and signing out forgets it", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  test.setTimeout(90_000);
  const show = await claimShow(request, [], TONIGHT);
  const [first = "", second = "", third = ""] = await buyTickets(show, 3);
  const code = await qrOf(third);
  await withoutReader(anna.context);
  const cable = await Cable.lay();
  // There and nowhere else: a browser may ask for the icon of the address it just left once it is at the next.
  await signInAsManager(anna.page, cable.url);
  const door = new Door(anna.page);
  await door.open(show, cable.url);
  await expect(anna.page.getByTestId("door-kept")).toContainText("without a network");
  await expectKeptFilesToDo(anna.page);
  await door.scan(first);
  await door.expectAnswer("good", "Come in");

  anna.mayBeCutOff();
  await cable.cut();
  await door.reload();
  await door.expectLink("down");
  await expect(anna.page.getByTestId("door-bar")).toContainText("Opened without a network");
  await door.scan(first);
  await door.expectAnswer("bad", "Used already");
  await door.scan(second);
  await door.expectAnswer("good", "Come in");
  await door.expectWaiting(1);
  // Once more: nobody comes in twice. The camera's reader came along, though nobody has used it yet.
  await door.reload();
  await door.expectWaiting(1);
  await door.scan(second);
  await door.expectAnswer("bad", "Used already");
  await hold(anna.page, code);
  await door.look();
  await door.expectAnswer("good", "Come in");
  await door.expectWaiting(2);

  // This page and what it runs on, and nothing else.
  const kept = () =>
    anna.page.evaluate(async () => {
      const names = await caches.keys();
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return requests.flat().map((request) => new URL(request.url).pathname);
    });
  for (const file of await kept()) {
    expect(file).toMatch(
      /^\/(staff\/[\w-]+\/door\/[0-9a-f-]{36}|site\/[0-9a-f]{16}\/((style|fonts)\/[\w.-]+|pkg\/[\w/-]+\.(js|wasm))|favicon\.svg)$/,
    );
    expect(file).not.toMatch(/\/pkg\/(show|pages)/);
  }
  for (const other of [`/staff/${show.theatre}/door`, `/staff/${show.theatre}/reports`, `/shows/${show.id}`]) {
    const tab = await anna.newTab();
    await expect(tab.page.goto(cable.url + other)).rejects.toThrow(/ERR_CONNECTION_REFUSED/);
    await tab.page.close();
  }

  await cable.mend();
  await door.expectLink("up");
  await door.expectWaiting(0);
  await door.expectAdmitted(3);
  await anna.page.goto(`${cable.url}/account`);
  await press(anna.page.getByTestId("sign-out"));
  await anna.page.waitForURL((url) => url.pathname === "/");
  await expect.poll(kept).toEqual([]);
});

test("a camera reads tickets where the browser reads no codes itself", async ({ request, anna }) => {
  const show = await claimShow(request, [], TONIGHT);
  const [first = ""] = await buyTickets(show, 1);
  const code = await qrOf(first);
  await withoutReader(anna.context);
  await signInAsManager(anna.page);
  const door = new Door(anna.page);
  await door.open(show);
  const asked = () =>
    anna.page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("split_reader")).length);
  expect(await asked(), "nobody has used the camera").toBe(0);
  await hold(anna.page, code);
  await door.look();
  await door.expectAnswer("good", "Come in");
  expect(await asked()).toBeGreaterThan(0);
  // It is the same ticket, and a camera of its own each time.
  await hold(anna.page, code);
  await door.look();
  await door.expectAnswer("bad", "Used already");
});
