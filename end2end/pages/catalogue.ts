// Finds a separate show for each test, so that tests do not share seats.
import { type APIRequestContext, expect, test } from "@playwright/test";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const HOUR_MS = 3_600_000;
// Sales of a show that begins sooner could close during a test.
const STARTS_IN_AT_LEAST_MS = 3 * HOUR_MS;
// A box office or a door shows these as today's shows.
const SOON_HOURS = 24;
// Small enough for the whole map, large enough to have a C7.
const MAX_SEATS = 450;
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

/** A show reserved for one test, with its seats by name. */
export interface Show {
  id: string;
  theatre: string;
  seatCount: number;
  /** Returns the index of a seat by row and number. */
  seat(row: string, number: string): number;
}

/** Selects a show; absent fields match any show. */
export interface ShowFilter {
  theatre?: string;
  film?: string;
  maxSeats?: number;
  minSeats?: number;
  startsWithinHours?: number;
}

/** Theatre and film of the screenshots, which no other test uses. */
export const SCREENSHOT_SHOW = { theatre: "lanterna-lisbon", film: "night-ferry" } as const;

/** Claims a show with all these seats free, such as ["C", "7"], and without areas of unnumbered places. */
export async function claimShow(
  request: APIRequestContext,
  needed: [string, string][] = [["C", "7"]],
  filter: ShowFilter = {},
): Promise<Show> {
  const isPictured = (show: ShowView) => show.theatre === SCREENSHOT_SHOW.theatre && show.film === SCREENSHOT_SHOW.film;
  const isWanted = (show: ShowView) =>
    show.seat_count <= (filter.maxSeats ?? MAX_SEATS) &&
    show.seat_count >= (filter.minSeats ?? 0) &&
    show.starts_at_ms < Date.now() + (filter.startsWithinHours ?? Infinity) * HOUR_MS &&
    (filter.theatre ?? show.theatre) === show.theatre &&
    (filter.film ?? show.film) === show.film &&
    (filter.film !== undefined || !isPictured(show));
  const shows = await upcomingShows(request);
  // Today's shows are few, and some tests need one.
  const isSoon = (show: ShowView) => show.starts_at_ms < Date.now() + SOON_HOURS * HOUR_MS;
  const candidates = filter.startsWithinHours === undefined ? [...shows.filter((show) => !isSoon(show)), ...shows.filter(isSoon)] : shows;
  for (const show of candidates) {
    if (!isWanted(show) || isClaimed(show.id)) continue;
    const plan = await planOf(request, show.id);
    // A room with an area is not sold out when all seats are taken; it is reserved for tests of areas.
    if (plan.areas?.[0]) continue;
    const rows = rowsOf(plan);
    const seat = (row: string, number: string) => {
      const found = rows.find((other) => other.label === row);
      return found?.numbers.includes(number) ? found.first + found.numbers.indexOf(number) : -1;
    };
    const states = await statesOf(request, show.id);
    const isFree = ([row, number]: [string, string]) => states[seat(row, number)] === "0";
    // Claimed last, so that a show without these seats is left for other tests.
    if (needed.every(isFree) && claim(show.id)) return { id: show.id, theatre: show.theatre, seatCount: show.seat_count, seat };
  }
  throw new Error(`no unclaimed show of the demo has ${needed.map((name) => name.join("")).join(", ")} free`);
}

/** Returns one show with free seats for each room of the demo. A room is identified by its theatre and number of seats. */
export async function roomsOfTheDemo(request: APIRequestContext): Promise<{ name: string; show: string }[]> {
  const rooms = new Map<string, string>();
  for (const show of await upcomingShows(request)) {
    const name = `${show.theatre}, ${show.seat_count} seats`;
    // Another test may sell a claimed show out, or have sold one that it planned.
    if (rooms.has(name) || show.seat_count === 0 || isClaimed(show.id)) continue;
    if ((await statesOf(request, show.id)).includes("0")) rooms.set(name, show.id);
  }
  return [...rooms].map(([name, show]) => ({ name, show }));
}

/** Returns a show in the largest room, which draws only its sections at first. */
export async function largestShow(request: APIRequestContext): Promise<string> {
  const all = (await upcomingShows(request)).sort((one, other) => other.seat_count - one.seat_count);
  if (!all[0]) throw new Error("the demo has no shows");
  return all[0].id;
}

/** Returns a show with an area of unnumbered places, shared with other tests. */
export async function showWithArea(request: APIRequestContext, film?: string): Promise<string> {
  for (const show of await upcomingShows(request)) {
    if (film !== undefined && show.film !== film) continue;
    if ((await planOf(request, show.id)).areas?.[0]) return show.id;
  }
  throw new Error("no show of the demo has an area of unnumbered places");
}

/** Claims a show with an area of unnumbered places. */
export async function claimShowWithArea(request: APIRequestContext): Promise<{ id: string; area: string; capacity: number }> {
  for (const show of await upcomingShows(request)) {
    if (isClaimed(show.id)) continue;
    const area = (await planOf(request, show.id)).areas?.[0];
    if (area && claim(show.id)) return { id: show.id, area: area.name, capacity: area.capacity };
  }
  throw new Error("no unclaimed show of the demo has an area of unnumbered places");
}

// Fetched once per worker: no test needs the shows that another test adds or calls off.
let programme: Promise<ShowView[]> | undefined;
const plans = new Map<string, Promise<PlanView>>();

/** Returns the shows that begin late enough, in order of start. */
export async function upcomingShows(request: APIRequestContext): Promise<ShowView[]> {
  programme ??= fetchProgramme(request);
  return (await programme).filter((show) => show.starts_at_ms > Date.now() + STARTS_IN_AT_LEAST_MS);
}

async function fetchProgramme(request: APIRequestContext): Promise<ShowView[]> {
  const found: ShowView[] = [];
  for (let day = 0; day <= DAYS_AHEAD; day += 1) {
    const date = new Date(Date.now() + day * 24 * HOUR_MS).toISOString().slice(0, 10);
    const answer = await request.get(`/api/v1/shows?date=${date}`);
    expect(answer.status()).toBe(200);
    found.push(...((await answer.json()) as { shows: ShowView[] }).shows);
  }
  return found;
}

async function planOf(request: APIRequestContext, show: string): Promise<PlanView> {
  const plan = plans.get(show) ?? fetchPlan(request, show);
  plans.set(show, plan);
  return plan;
}

async function fetchPlan(request: APIRequestContext, show: string): Promise<PlanView> {
  const answer = await request.get(`/api/v1/shows/${show}/plan`);
  expect(answer.status()).toBe(200);
  return (await answer.json()) as PlanView;
}

function rowsOf(plan: PlanView) {
  // In a room with several sections, row labels repeat and seat names include the section.
  return plan.sections.length === 1 ? (plan.sections[0]?.rows ?? []) : [];
}

// One digit per seat; 0 is available.
async function statesOf(request: APIRequestContext, show: string): Promise<string> {
  const answer = await request.get(`/api/v1/shows/${show}/seats`);
  expect(answer.status()).toBe(200);
  return ((await answer.json()) as { states: string }).states;
}

function claimFolder(show = ""): string {
  return join(test.info().project.outputDir, ".claimed", show);
}

function isClaimed(show: string): boolean {
  return existsSync(claimFolder(show));
}

// Workers are separate processes: creating a directory is atomic, so only one of them succeeds.
function claim(show: string): boolean {
  mkdirSync(claimFolder(), { recursive: true });
  try {
    mkdirSync(claimFolder(show));
    return true;
  } catch {
    return false;
  }
}
