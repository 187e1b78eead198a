// The messages of the product, and what of them stands on a page.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "@playwright/test";

export type Tag = "en" | "de" | "es" | "hi" | "ar";

/** The messages of a language, by key. */
export function messages(tag: Tag): Record<string, string> {
  const file = join(import.meta.dirname, "../../messages", `${tag}.json`);
  return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
}

/** What a person can read or hear of a page, except what says of itself that it is English or stands in `data`. */
export async function textsOf(page: Page, data = ""): Promise<string[]> {
  return page.evaluate((data) => {
    const texts: string[] = [document.title];
    const isData = (element: Element | null) => data !== "" && !!element?.closest(data);
    const isEnglish = (element: Element | null) => element?.closest("[lang]")?.getAttribute("lang") === "en" || isData(element);
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const within = node.parentElement;
      if (within && !["SCRIPT", "STYLE", "NOSCRIPT"].includes(within.tagName) && !isEnglish(within)) texts.push(node.textContent ?? "");
    }
    for (const element of document.querySelectorAll("[aria-label], [placeholder], [title]")) {
      if (isEnglish(element)) continue;
      for (const name of ["aria-label", "placeholder", "title"]) texts.push(element.getAttribute(name) ?? "");
    }
    return texts.map((text) => text.trim()).filter((text) => text !== "");
  }, data);
}

// Elements that hold what people and cinemas wrote; a poster has its film's title in lines.
const DATA = "bdi, .poster";

/**
 * Texts of a page in another script with two or more Latin words in a row or apart, whoever put them there:
 * what messages do not know of is found, too. Names are no such words, nor are addresses and codes.
 */
export async function latinOn(page: Page): Promise<string[]> {
  const names = namesOfTheDemo();
  const texts = await textsOf(page, DATA);
  return texts.filter((text) => {
    const bare = withoutIsolated(text).replace(/\S*[@/]\S*/g, " ");
    return (bare.replace(names, " ").match(LATIN_WORD) ?? []).length >= 2;
  });
}

// Codes have no small letters.
const LATIN_WORD = /(?<![\p{L}\p{N}])(?=\p{L}*\p{Ll})\p{Script=Latin}{2,}(?![\p{L}\p{N}])/gu;

// What `cargo xtask test` plants beside the demo: a show that begins in a moment.
const PLANTED = ["Last Minute", "Last Call", "Greenwich", "The lights go down.", "It begins.", "Meridian", "Short"];

// Fields of the demo that people read.
const NAMES = ["name", "label", "title", "tagline", "synopsis", "genre", "rating", "address", "languages", "formats"];

/** Whatever the demo calls its films, theatres, sections and seats. */
function namesOfTheDemo(): RegExp {
  const demo = join(import.meta.dirname, "../../demo");
  const layouts = readdirSync(join(demo, "layouts")).map((file) => join(demo, "layouts", file));
  const found = new Set<string>(PLANTED);
  const collect = (value: unknown, isName: boolean): void => {
    if (typeof value === "string" && isName) found.add(value.replaceAll("{n}", "").trim());
    else if (Array.isArray(value)) value.forEach((item) => collect(item, isName));
    else if (value && typeof value === "object") for (const [key, item] of Object.entries(value)) collect(item, NAMES.includes(key));
  };
  for (const file of [join(demo, "chain.json"), ...layouts]) collect(JSON.parse(readFileSync(file, "utf8")), false);
  // The longest first: one name may begin with another.
  const names = [...found].filter((name) => /\p{L}/u.test(name)).sort((one, other) => other.length - one.length);
  return new RegExp(`(?<!\\p{L})(?:${names.map(escape).join("|")})(?!\\p{L})`, "gu");
}

/** Without the values that a message holds apart from its own direction. */
function withoutIsolated(text: string): string {
  const bare = text.replace(/\u2068[^\u2068\u2069]*\u2069/g, " ");
  return bare === text ? text : withoutIsolated(bare);
}

/** Texts among these that are an English message, word for word, and no message of the other language. */
export function englishAmong(texts: string[], tag: Tag): string[] {
  const [english, other] = [messages("en"), messages(tag)];
  const spoken = new Set(Object.values(other).flatMap(formsOf));
  const patterns = Object.values(english)
    .flatMap(formsOf)
    .filter((form) => !spoken.has(form) && lettersOutside(form) >= 3)
    .map((form) => new RegExp(`^${form.split(HOLE).map(escape).join(".+")}$`, "s"));
  return texts.filter((text) => patterns.some((pattern) => pattern.test(text)));
}

// Stands for a value.
const HOLE = "\u0000";

/** Every form a message can take: a value each for its choices, a hole for each value. */
function formsOf(pattern: string): string[] {
  const open = pattern.indexOf("{");
  if (open < 0) return [pattern.replaceAll("#", HOLE)];
  const close = closing(pattern, open);
  const inside = pattern.slice(open + 1, close);
  const [before, after] = [pattern.slice(0, open).replaceAll("#", HOLE), formsOf(pattern.slice(close + 1))];
  const choices = inside.includes("{") ? branches(inside).flatMap(formsOf) : [HOLE];
  return choices.flatMap((choice) => after.map((rest) => before + choice + rest));
}

function branches(text: string): string[] {
  const found: string[] = [];
  for (let at = text.indexOf("{"); at >= 0; at = text.indexOf("{", at)) {
    const close = closing(text, at);
    found.push(text.slice(at + 1, close));
    at = close + 1;
  }
  return found;
}

function closing(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}" && --depth === 0) return at;
  }
  throw new Error(`a brace is open in ${text}`);
}

function lettersOutside(form: string): number {
  return form.replace(/[^\p{L}]/gu, "").length;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
