// Zooming and panning of the seat map, by mouse or touch.
import type { CDPSession, Locator, Page } from "@playwright/test";

import { pinch, type Point } from "./touch.js";
import { press } from "./show.js";

export class MapView {
  readonly scroller: Locator;
  readonly room: Locator;
  readonly minimap: Locator;

  constructor(readonly page: Page) {
    this.scroller = page.getByTestId("room-pan");
    this.room = page.locator("svg.room");
    this.minimap = page.getByTestId("minimap");
  }

  /** Presses a zoom button until its limit. */
  async zoom(which: "in" | "out" | "whole", times = 1): Promise<void> {
    const button = this.page.getByTestId(`zoom-${which}`);
    for (let presses = 0; presses < times; presses += 1) {
      if ((await button.getAttribute("aria-disabled")) === "true") return;
      await press(button);
    }
  }

  /** Returns the drawn width of the room in pixels, without animation. */
  async width(): Promise<number> {
    return this.room.evaluate((room) => room.clientWidth || room.getBoundingClientRect().width);
  }

  async scrolled(): Promise<Point> {
    return this.scroller.evaluate((scroller) => ({ x: scroller.scrollLeft, y: scroller.scrollTop }));
  }

  /** Returns the middle of the touchable part of the map: on phones the cart covers its lower part. */
  async middle(): Promise<Point> {
    const seen = await this.scroller.evaluate((scroller) => {
      const box = scroller.getBoundingClientRect();
      const x = box.x + box.width / 2;
      const rows = [...Array(Math.ceil(box.height)).keys()].map((row) => box.y + row);
      return { x, rows: rows.filter((y) => scroller.contains(document.elementFromPoint(x, y))) };
    });
    const [first, last] = [seen.rows.at(0), seen.rows.at(-1)];
    if (first === undefined || last === undefined) throw new Error("no part of the map can be touched");
    return { x: seen.x, y: (first + last) / 2 };
  }

  /** Returns the centre of a seat on the screen. */
  async seatAt(index: number): Promise<Point> {
    const box = (await this.page.locator(`#seat-${index} .seat-target`).boundingBox())!;
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  /** Returns true when a point of the screen is on a seat. */
  async isAt(index: number, point: Point): Promise<boolean> {
    const box = (await this.page.locator(`#seat-${index} .seat-target`).boundingBox())!;
    const [right, below] = [point.x - box.x, point.y - box.y];
    return right >= 0 && right <= box.width && below >= 0 && below <= box.height;
  }

  /** Drags with the mouse. */
  async drag(from: Point, by: Point): Promise<void> {
    await this.page.mouse.move(from.x, from.y);
    await this.page.mouse.down();
    for (let step = 1; step <= 8; step += 1) await this.page.mouse.move(from.x + (by.x * step) / 8, from.y + (by.y * step) / 8);
    await this.page.mouse.up();
  }

  /** Drags the map to and fro by mouse, some pixels in every frame, until the returned function is called. */
  async keepDragging(): Promise<() => Promise<void>> {
    const drag = await this.scroller.evaluateHandle(
      (scroller, sweep) => {
        const box = scroller.getBoundingClientRect();
        const drag = { isOver: false };
        let [moved, step] = [0, sweep.step];
        const send = (type: string) => {
          const at = { clientX: box.x + box.width / 2 + moved, clientY: box.y + box.height / 2 + moved };
          scroller.dispatchEvent(new PointerEvent(type, { ...at, pointerType: "mouse", buttons: 1, bubbles: true }));
        };
        const move = () => {
          if (drag.isOver) return send("pointerup");
          if (Math.abs(moved + step) > sweep.reach) step = -step;
          moved += step;
          send("pointermove");
          requestAnimationFrame(move);
        };
        send("pointerdown");
        move();
        return drag;
      },
      { step: 4, reach: 20 },
    );
    return () => drag.evaluate((drag) => void (drag.isOver = true));
  }

  /** Records the frames, milliseconds on the page's clock, in which seats are painted. The returned function returns them. */
  async recordPaints(): Promise<() => Promise<number[]>> {
    const paints = await this.room.evaluateHandle((room) => {
      const paints = new Set<number>();
      const note = () => void paints.add(Number(document.timeline.currentTime));
      new MutationObserver(note).observe(room, { subtree: true, attributeFilter: ["data-state"] });
      return paints;
    });
    return () => paints.evaluate((paints) => [...paints]);
  }

  /** Returns the painted state of each seat by its index. */
  async paintedStates(): Promise<Record<string, string>> {
    return this.room.evaluate((room) => {
      const seats = [...room.querySelectorAll<SVGElement>("[data-seat]")];
      return Object.fromEntries(seats.map(({ dataset }) => [dataset.seat, dataset.state]));
    });
  }

  /** Pinches around a point from distance `from` to distance `to`. */
  async pinch(about: Point, from: number, to: number): Promise<void> {
    await pinch(this.page, about, from, to);
  }

  /** Swipes with one finger from a point by a distance. */
  async swipe(from: Point, by: Point): Promise<void> {
    const session: CDPSession = await this.page.context().newCDPSession(this.page);
    await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [from] });
    for (let step = 1; step <= 20; step += 1) {
      const touchPoints = [{ x: from.x + (by.x * step) / 20, y: from.y + (by.y * step) / 20 }];
      await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints });
    }
    await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await session.detach();
    // The browser makes no click of a tap in the frames after a gesture.
    await this.page.evaluate(() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown))));
  }
}
