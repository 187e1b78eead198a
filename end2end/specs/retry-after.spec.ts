// Load shedding: the page retries with the same key after `Retry-After`.
import { claimShow } from "../pages/catalogue.js";
import { expect, test } from "../pages/visitors.js";

/** `Retry-After` of the answer, seconds. */
const RETRY_AFTER_S = 3;
/** Maximum difference between the clocks of page and test, milliseconds. */
const SLACK_MS = 100;

test("a shed hold request is retried after Retry-After", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const asked: { at: number; key: string | undefined }[] = [];
  await anna.page.route(`**/api/v1/shows/${show.id}/holds`, async (route) => {
    asked.push({ at: Date.now(), key: route.request().headers()["idempotency-key"] });
    if (asked.length > 1) return route.continue();
    const problem = { type: "about:blank", title: "Too much at once", status: 503, detail: "", code: "overloaded" };
    return route.fulfill({
      status: 503,
      headers: { "content-type": "application/problem+json", "retry-after": String(RETRY_AFTER_S) },
      body: JSON.stringify(problem),
    });
  });
  await hers.hold(c7);
  expect(asked).toHaveLength(2);
  const [first, second] = asked as [{ at: number; key: string | undefined }, { at: number; key: string | undefined }];
  expect(second.at - first.at).toBeGreaterThanOrEqual(RETRY_AFTER_S * 1_000 - SLACK_MS);
  expect(first.key).toBeTruthy();
  expect(second.key).toBe(first.key);
});
