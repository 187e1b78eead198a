// Screenshots that do not change from day to day: times, dates and amounts are replaced by constants.
import { expect, type Locator, type Page } from "@playwright/test";

/** Compares the page, or a part of it, with a reference screenshot. */
export async function expectPicture(page: Page, name: string, part?: Locator): Promise<void> {
  await page.evaluate(() => document.fonts.ready);
  await page.evaluate(replaceVolatileTexts);
  if (part) await expect(part).toHaveScreenshot(`${name}.png`);
  else await expect(page).toHaveScreenshot(`${name}.png`);
}

// Runs in the page. Replaces matches in every text node, also in the middle of a sentence.
function replaceVolatileTexts(): void {
  const always: [RegExp, string][] = [
    [/\b\d{1,2}:\d{2}\b/g, "20:15"],
    [/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b/g, "Sat 21 Nov"],
    [/€\s?[\d,]+(?:\.\d\d)?/g, "€12.50"],
    [/\b\d+ places left\b/g, "57 places left"],
    [/\b(?:less than )?\d+\.\d s before\b/g, "0.4 s before"],
    [/\b[0-9A-Z]{4}-[0-9A-Z]{4}\b/g, "K7QM-2XPA"],
    [/\b(?:Portuguese|German)\b/g, "English"],
    [/\banna-[0-9a-f-]{36}@/g, "anna@"],
  ];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const before = text.nodeValue ?? "";
    // Every screenshot with a sum has two seats.
    const isSum = text.parentElement?.closest(".cart-total, .booking-total") != null;
    const after = always.reduce((words, [wanted, same]) => words.replace(wanted, same), before);
    if (after !== before) text.nodeValue = isSum ? after.replace("€12.50", "€25.00") : after;
  }
}
