// Accessibility checks for every page in every state.
import { expect, type Page, test } from "@playwright/test";
import axe from "axe-core";

const WCAG_22_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
// Elements reported per rule: a room has hundreds of seats with the same finding.
const MAX_REPORTED = 3;
// A laptop of 1280 pixels at 200 % has a viewport of 640 pixels.
const ZOOMED = { width: 640, height: 400 };
const PHONE = { width: 390, height: 844 };

/** Expects no axe findings in the light and dark scheme and no horizontal scrolling; on a laptop also that at 200 % no
 * control is lost. `state` names the page state in failures. */
export async function expectAccessible(page: Page, state: string): Promise<void> {
  await test.step(`for everyone: ${state}`, async () => {
    await page.emulateMedia({ colorScheme: "light" });
    await finishTransitions(page);
    expect(await findings(page, WCAG_22_AA), `${state}, light`).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    await finishTransitions(page);
    expect(await findings(page), `${state}, contrast in the dark`).toEqual([]);
    expect(await sideways(page), `${state} scrolls sideways`).toBeLessThanOrEqual(0);
    if (!test.info().project.use.hasTouch) await expectUsableAtZoom(page, state);
  });
}

/** Finishes colour transitions, which lack contrast half-way. `getAnimations` updates the styles first; waiting for frames
 * would never end on a page that draws none. */
async function finishTransitions(page: Page): Promise<void> {
  await page.evaluate(() => {
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
  });
}

/** Returns axe's findings: rule, element and reason. Without tags only contrast is checked. */
async function findings(page: Page, tags?: string[]): Promise<string[]> {
  // The pages have no frames, so axe can stay loaded from one state to the next. Only violations are requested. The rule
  // for target sizes is off by default for any tags, and unique landmark names are a best practice without a WCAG tag.
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
    nodes.slice(0, MAX_REPORTED).map((node) => `${id}: ${node.target.join(" ")} ${node.failureSummary?.replace(/\s+/g, " ") ?? ""}`),
  );
}

/** Expects that a staff page, made for a tablet or a laptop, fits a phone without horizontal scrolling. */
export async function expectFitsPhone(page: Page, state: string): Promise<void> {
  await test.step(`on a phone: ${state}`, async () => {
    const usual = page.viewportSize();
    await page.setViewportSize(PHONE);
    // The layout changes in the next frame.
    await expect.poll(() => page.evaluate(() => document.documentElement.clientWidth)).toBeLessThanOrEqual(PHONE.width);
    await finishTransitions(page);
    expect(await sideways(page), `${state} scrolls sideways on a phone`).toBeLessThanOrEqual(0);
    if (usual) await page.setViewportSize(usual);
  });
}

function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

async function expectUsableAtZoom(page: Page, state: string): Promise<void> {
  const usual = page.viewportSize();
  const before = await visibleControls(page);
  await page.setViewportSize(ZOOMED);
  await openDetailsOfShow(page, true);
  // The layout changes in the next frame; the cart becomes a bar with a button that opens it.
  await expect
    .poll(async () => {
      const after = await visibleControls(page);
      return before.filter((name) => !after.includes(name));
    }, `${state}: lost at 200 %`)
    .toEqual([]);
  expect(await sideways(page), `${state} scrolls sideways at 200 %`).toBeLessThanOrEqual(0);
  await openDetailsOfShow(page, false);
  if (usual) await page.setViewportSize(usual);
}

/** Opens or closes the place and facts of a show, which a narrow page has behind a button. */
async function openDetailsOfShow(page: Page, open: boolean): Promise<void> {
  await page.locator("details.show-about").evaluateAll((all, isOpen) => all.forEach((one) => ((one as HTMLDetailsElement).open = isOpen)), open);
}

/** Returns the names of all visible headings and controls outside of the cart. */
function visibleControls(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll("h1, h2, h3, a[href], button, input, select, summary")];
    const seen = all.filter((one) => !one.closest(".cart, .skip-link, [aria-hidden=true]") && one.checkVisibility({ visibilityProperty: true }));
    return seen.map((one) => one.getAttribute("aria-label") ?? one.getAttribute("name") ?? one.textContent?.trim() ?? "");
  });
}
