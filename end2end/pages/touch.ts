// Two-finger touch gestures.
import type { CDPSession, Page } from "@playwright/test";

export interface Point {
  x: number;
  y: number;
}

/** Moves two fingers around a point from distance `from` to distance `to`, and both by `by` meanwhile. */
export async function pinch(page: Page, about: Point, from: number, to: number, by: Point = { x: 0, y: 0 }): Promise<void> {
  const session: CDPSession = await page.context().newCDPSession(page);
  const fingers = (share: number) => {
    const apart = from + (to - from) * share;
    const middle = { x: about.x + by.x * share, y: about.y + by.y * share };
    return [-1, 1].map((side, id) => ({ x: middle.x + (side * apart) / 2, y: middle.y, id }));
  };
  const send = (type: "touchStart" | "touchMove" | "touchEnd", touchPoints: (Point & { id: number })[]) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints });
  await send("touchStart", fingers(0));
  for (let step = 1; step <= 10; step += 1) await send("touchMove", fingers(step / 10));
  await send("touchEnd", []);
  await session.detach();
}
