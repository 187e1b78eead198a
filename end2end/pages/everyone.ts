// What holds on every page in every state: it can be used by everyone.
import { expect, type Page, test } from "@playwright/test";
import axe from "axe-core";

const WCAG_22_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
// Elements named for each rule: a room has hundreds of seats with the same fault.
const MOST_NAMED = 3;
// A laptop of 1280 pixels at 200 % shows a page as 640 wide.
const ZOOMED = { width: 640, height: 400 };
const PHONE = { width: 390, height: 844 };

/** Requires of the page as it stands: nothing for axe to find, in light and in dark; no sideways scrolling; on a
 * laptop all of it again at 200 %, with nothing lost. `state` names it in what is reported. */
export async function expectForEveryone(page: Page, state: string): Promise<void> {
  await test.step(`for everyone: ${state}`, async () => {
    await page.emulateMedia({ colorScheme: "light" });
    await recoloured(page);
    expect(await findings(page, WCAG_22_AA), `${state}, light`).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    await recoloured(page);
    expect(await findings(page), `${state}, contrast in the dark`).toEqual([]);
    expect(await sideways(page), `${state} scrolls sideways`).toBeLessThanOrEqual(0);
    if (!test.info().project.use.hasTouch) await expectZoomable(page, state);
  });
}

/** Has colours changed at once: some take a moment, and halfway nothing contrasts. Asking for what moves brings styles up
 * to date first; a page that draws no frames would be waited for in vain. */
async function recoloured(page: Page): Promise<void> {
  await page.evaluate(() => {
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
  });
}

/** What axe finds: rule, element and why. Without tags only contrast is looked at. */
async function findings(page: Page, tags?: string[]): Promise<string[]> {
  // Our pages have no frames, so that axe can stay in the page from one state to the next; violations are all that is
  // asked for, so that it names no others. The size of targets is off by default, whatever tags are asked for; that landmarks
  // have names of their own is good practice, which has no such tag.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const options: axe.RunOptions = {
    runOnly: tags ? { type: "tag", values: tags } : { type: "rule", values: ["color-contrast"] },
    resultTypes: ["violations"],
    ...(tags && { rules: { "target-size": { enabled: true }, "landmark-unique": { enabled: true } } }),
  };
  const violations = await page.evaluate(async (options) => {
    const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, options);
    return violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) }));
  }, options);
  return violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, MOST_NAMED).map((node) => `${id}: ${node.target.join(" ")} ${node.failureSummary?.replace(/\s+/g, " ") ?? ""}`),
  );
}

/** Requires of a page of staff, who work at a tablet or a laptop, that it fits a phone as well: nothing scrolls sideways. */
export async function expectOnPhone(page: Page, state: string): Promise<void> {
  await test.step(`on a phone: ${state}`, async () => {
    const usual = page.viewportSize();
    await page.setViewportSize(PHONE);
    // The layout follows in the next frame.
    await expect.poll(() => page.evaluate(() => document.documentElement.clientWidth)).toBeLessThanOrEqual(PHONE.width);
    await recoloured(page);
    expect(await sideways(page), `${state} scrolls sideways on a phone`).toBeLessThanOrEqual(0);
    if (usual) await page.setViewportSize(usual);
  });
}

function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

async function expectZoomable(page: Page, state: string): Promise<void> {
  const usual = page.viewportSize();
  const before = await offered(page);
  await page.setViewportSize(ZOOMED);
  // The layout follows in the next frame; the cart becomes a bar with a button that opens it.
  await expect
    .poll(async () => {
      const after = await offered(page);
      return before.filter((name) => !after.includes(name));
    }, `${state}: lost at 200 %`)
    .toEqual([]);
  expect(await sideways(page), `${state} scrolls sideways at 200 %`).toBeLessThanOrEqual(0);
  if (usual) await page.setViewportSize(usual);
}

/** Names of all headings and controls one can see, those of the cart left out. */
function offered(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll("h1, h2, h3, a[href], button, input, select, summary")];
    const seen = all.filter((one) => !one.closest(".cart, .skip-link, [aria-hidden=true]") && one.checkVisibility({ visibilityProperty: true }));
    return seen.map((one) => one.getAttribute("aria-label") ?? one.getAttribute("name") ?? one.textContent?.trim() ?? "");
  });
}
