// The product in other languages, one of them right-to-left: a purchase without any English text.
import type { Page } from "@playwright/test";

import { claimShow, upcomingShows } from "../pages/catalogue.js";
import { englishAmong, latinOn, messages, type Tag, textsOf } from "../pages/languages.js";
import { expectBookingState, payWith, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

// The demo sells in euros and rupees.
const LANGUAGES: { tag: Tag; direction: "ltr" | "rtl"; money: RegExp }[] = [
  { tag: "de", direction: "ltr", money: /^[\d.]+,\d{2}\u00a0[€₹]$/ },
  { tag: "ar", direction: "rtl", money: /^\u200f[\d,]+\.\d{2}\u00a0[€₹]$/ },
];

async function choose(page: Page, tag: Tag): Promise<void> {
  await page.goto("/");
  await press(page.getByTestId(`language-${tag}`));
  await expect(page.locator("html")).toHaveAttribute("lang", tag);
}

async function expectIn(page: Page, tag: Tag, direction: string): Promise<void> {
  const html = page.locator("html");
  await expect(html).toHaveAttribute("lang", tag);
  await expect(html).toHaveAttribute("dir", direction);
  expect(englishAmong(await textsOf(page), tag), `English on ${page.url()}`).toEqual([]);
  if (tag === "ar") expect(await latinOn(page), `Latin words on ${page.url()}`).toEqual([]);
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(sideways, `${page.url()} scrolls sideways`).toBeLessThanOrEqual(0);
}

for (const { tag, direction, money } of LANGUAGES) {
  test(`a purchase in ${tag} has no English text`, async ({ request, anna }) => {
    const words = messages(tag);
    const page = anna.page;
    await choose(page, tag);
    const show = await claimShow(request);
    const hers = await anna.visit(show.id);
    await expectIn(page, tag, direction);
    await hers.hold(show.seat("C", "7"));
    expect(await hers.total.textContent()).toMatch(money);
    await hers.openCart();
    await expectIn(page, tag, direction);

    // Form errors are translated.
    await press(page.getByTestId("pay"));
    await expect(page.locator("#buyer-name-error")).toHaveText(words["pay.name_missing"] ?? "");
    await hers.checkOut("ليلى Müller", "leila@example.org");
    await payWith(page, "paid");
    await expectBookingState(page, "CONFIRMED");
    await expect(page.getByTestId("booking-state")).toHaveText(words["status.done_title"] ?? "");
    await expectIn(page, tag, direction);
    expect((await readTickets(page)).length).toBe(1);
    await expectIn(page, tag, direction);
  });

  test(`browsing pages in ${tag} have no English text`, async ({ request, anna }) => {
    const [first] = await upcomingShows(request);
    if (!first) throw new Error("the demo has no shows");
    await choose(anna.page, tag);
    for (const path of ["/", `/cities/${first.city}`, `/theatres/${first.theatre}`, "/search?q=a", "/search?q=zzzz", "/no-such-page"]) {
      await anna.page.goto(path);
      await expectIn(anna.page, tag, direction);
    }
  });
}

test("the browser's language is used until another one is chosen", async ({ browser }) => {
  const context = await browser.newContext({ locale: "de-AT" });
  const page = await context.newPage();
  await page.goto("/search?q=a");
  await expect(page.locator("html")).toHaveAttribute("lang", "de");
  await press(page.getByTestId("language-hi"));
  await expect(page.locator("html")).toHaveAttribute("lang", "hi");
  await expect(page.getByRole("searchbox").first(), "the search term is kept").toHaveValue("a");
  await page.goto("/search?q=a");
  await expect(page.locator("html"), "the choice is remembered").toHaveAttribute("lang", "hi");
  await context.close();
});
