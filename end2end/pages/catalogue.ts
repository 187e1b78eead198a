// Finds shows to test on, one for each test, so that no test sees another's seats.
import { type APIRequestContext, expect, test } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const HOUR_MS = 3_600_000;
// A show that begins sooner could close its doors while a test runs.
const STARTS_IN_AT_LEAST_MS = 3 * HOUR_MS;
// What a box office or a door calls today.
const SOON_HOURS = 24;
// Small enough to be drawn whole, large enough to have a C7.
const MOST_SEATS = 450;
const DAYS_AHEAD = 6;

interface ShowView {
  id: string;
  film_title: string;
  theatre: string;
  city: string;
  starts_at_ms: number;
  seat_count: number;
  format: string;
  language: string;
  local_date: string;
  film: string;
}

interface PlanView {
  seat_count: number;
  sections: { name: string; rows: { label: string; first: number; numbers: string[] }[] }[];
  areas?: { name: string; capacity: number }[];
}

/** A show of this test's own, and its seats by name. */
export interface Show {
  id: string;
  theatre: string;
  seatCount: number;
  /** Index of the seat in this row with this number. */
  seat(row: string, number: string): number;
}

/** Which show a test means; anything that is left out does not matter. */
export interface Wish {
  theatre?: string;
  film?: string;
  mostSeats?: number;
  leastSeats?: number;
  startsWithinHours?: number;
}

/** The room and the film that pictures are taken of, and nobody else uses. */
export const PICTURED = { theatre: "lanterna-lisbon", film: "night-ferry" } as const;

/** A show nobody else uses, whose room has all these seats free, ["C", "7"], and no places without numbers. */
export async function claimShow(
  request: APIRequestContext,
  needed: [string, string][] = [["C", "7"]],
  wish: Wish = {},
): Promise<Show> {
  const isPictured = (show: ShowView) => show.theatre === PICTURED.theatre && show.film === PICTURED.film;
  const isMeant = (show: ShowView) =>
    show.seat_count <= (wish.mostSeats ?? MOST_SEATS) &&
    show.seat_count >= (wish.leastSeats ?? 0) &&
    show.starts_at_ms < Date.now() + (wish.startsWithinHours ?? Infinity) * HOUR_MS &&
    (wish.theatre ?? show.theatre) === show.theatre &&
    (wish.film ?? show.film) === show.film &&
    (wish.film !== undefined || !isPictured(show));
  const shows = await showsToCome(request);
  // Shows of today are few, and some tests can use no other.
  const isSoon = (show: ShowView) => show.starts_at_ms < Date.now() + SOON_HOURS * HOUR_MS;
  const inTurn = wish.startsWithinHours === undefined ? [...shows.filter((show) => !isSoon(show)), ...shows.filter(isSoon)] : shows;
  for (const show of inTurn) {
    if (!isMeant(show)) continue;
    const plan = await planOf(request, show.id);
    // Who takes every seat of such a room has not sold it out; it is kept for those who ask for an area.
    if (plan.areas?.[0] || !claim(show.id)) continue;
    const rows = rowsOf(plan);
    const states = await statesOf(request, show.id);
    const seat = (row: string, number: string) => {
      const found = rows.find((other) => other.label === row);
      return found ? found.first + found.numbers.indexOf(number) : -1;
    };
    const has = ([row, number]: [string, string]) =>
      rows.some((other) => other.label === row && other.numbers.includes(number)) && states[seat(row, number)] === "0";
    if (needed.every(has)) return { id: show.id, theatre: show.theatre, seatCount: show.seat_count, seat };
  }
  throw new Error(`no show of the demo is left that has ${needed.map((name) => name.join("")).join(", ")} free`);
}

/** A show in the largest room: only its sections are drawn at first. */
export async function largestShow(request: APIRequestContext): Promise<string> {
  const all = (await showsToCome(request)).sort((one, other) => other.seat_count - one.seat_count);
  if (!all[0]) throw new Error("the demo has no shows");
  return all[0].id;
}

/** A show with an area without numbered seats, to look at; others may use it. */
export async function showWithArea(request: APIRequestContext, film?: string): Promise<string> {
  for (const show of await showsToCome(request)) {
    if (film !== undefined && show.film !== film) continue;
    if ((await planOf(request, show.id)).areas?.[0]) return show.id;
  }
  throw new Error("no show of the demo has an area without numbered seats");
}

/** A show nobody else uses, in a room with an area without numbered seats. */
export async function claimShowWithArea(request: APIRequestContext): Promise<{ id: string; area: string; capacity: number }> {
  for (const show of await showsToCome(request)) {
    const area = (await planOf(request, show.id)).areas?.[0];
    if (area && claim(show.id)) return { id: show.id, area: area.name, capacity: area.capacity };
  }
  throw new Error("no show of the demo is left that has an area without numbered seats");
}

/** Shows that begin late enough, in the order they start. */
export async function showsToCome(request: APIRequestContext): Promise<ShowView[]> {
  const found: ShowView[] = [];
  for (let day = 0; day <= DAYS_AHEAD; day += 1) {
    const date = new Date(Date.now() + day * 24 * HOUR_MS).toISOString().slice(0, 10);
    const answer = await request.get(`/api/v1/shows?date=${date}`);
    expect(answer.status()).toBe(200);
    found.push(...((await answer.json()) as { shows: ShowView[] }).shows);
  }
  return found.filter((show) => show.starts_at_ms > Date.now() + STARTS_IN_AT_LEAST_MS);
}

async function planOf(request: APIRequestContext, show: string): Promise<PlanView> {
  const answer = await request.get(`/api/v1/shows/${show}/plan`);
  expect(answer.status()).toBe(200);
  return (await answer.json()) as PlanView;
}

function rowsOf(plan: PlanView) {
  // A room of several parts has several rows C; its seats are named with the part in front.
  return plan.sections.length === 1 ? (plan.sections[0]?.rows ?? []) : [];
}

// A digit per seat; 0 is available.
async function statesOf(request: APIRequestContext, show: string): Promise<string> {
  const answer = await request.get(`/api/v1/shows/${show}/seats`);
  expect(answer.status()).toBe(200);
  return ((await answer.json()) as { states: string }).states;
}

// Workers are processes: making a folder is the one thing that only one of them can do.
function claim(show: string): boolean {
  const claims = join(test.info().project.outputDir, ".claimed");
  mkdirSync(claims, { recursive: true });
  try {
    mkdirSync(join(claims, show));
    return true;
  } catch {
    return false;
  }
}
