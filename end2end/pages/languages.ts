// The product's messages, and the texts of a page.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { Page } from "@playwright/test";

export type Tag = "en" | "de" | "es" | "hi" | "ar";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));

/** Returns the messages of a language by key. */
export function messages(tag: Tag): Record<string, string> {
  const file = join(CHECKOUT, "messages", `${tag}.json`);
  return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
}

/** Returns the visible and spoken texts of a page, except those marked as English or inside of `data`. */
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

// Elements with texts of people and cinemas; a poster has the film's title in lines.
const DATA = "bdi, .poster";

/**
  * Returns the texts of a page in another script that have two or more Latin words, also texts that are no messages.
  * Names, addresses and codes do not count.
 */
export async function latinOn(page: Page): Promise<string[]> {
  const names = namesOfTheDemo();
  const texts = await textsOf(page, DATA);
  return texts.filter((text) => {
    const bare = withoutIsolated(text).replace(/\S*[@/]\S*/g, " ");
    return (bare.replace(names, " ").match(LATIN_WORD) ?? []).length >= 2;
  });
}

// Codes have no lower-case letters.
const LATIN_WORD = /(?<![\p{L}\p{N}])(?=\p{L}*\p{Ll})\p{Script=Latin}{2,}(?![\p{L}\p{N}])/gu;

// Names of the closing show, which `cargo xtask test` adds to the demo.
const CLOSING_SHOW_NAMES = ["Last Minute", "Last Call", "Greenwich", "The lights go down.", "It begins.", "Meridian", "Short"];

// Fields of the demo with displayed texts.
const NAMES = ["name", "label", "title", "tagline", "synopsis", "genre", "rating", "address", "languages", "formats"];

/** Matches the demo's names of films, theatres, sections and seats. */
function namesOfTheDemo(): RegExp {
  const demo = join(CHECKOUT, "demo");
  const layouts = readdirSync(join(demo, "layouts")).map((file) => join(demo, "layouts", file));
  const found = new Set<string>(CLOSING_SHOW_NAMES);
  const collect = (value: unknown, isName: boolean): void => {
    if (typeof value === "string" && isName) found.add(value.replaceAll("{n}", "").trim());
    else if (Array.isArray(value)) value.forEach((item) => collect(item, isName));
    else if (value && typeof value === "object") for (const [key, item] of Object.entries(value)) collect(item, NAMES.includes(key));
  };
  for (const file of [join(demo, "chain.json"), ...layouts]) collect(JSON.parse(readFileSync(file, "utf8")), false);
  // Longest first: a name may be a prefix of another.
  const names = [...found].filter((name) => /\p{L}/u.test(name)).sort((one, other) => other.length - one.length);
  return new RegExp(`(?<!\\p{L})(?:${names.map(escape).join("|")})(?!\\p{L})`, "gu");
}

/** Removes values in directional isolates. */
function withoutIsolated(text: string): string {
  const bare = text.replace(/\u2068[^\u2068\u2069]*\u2069/g, " ");
  return bare === text ? text : withoutIsolated(bare);
}

/** Returns the texts that are an English message and not also a message of the other language. */
export function englishAmong(texts: string[], tag: Tag): string[] {
  const [english, other] = [messages("en"), messages(tag)];
  const known = new Set(Object.values(other).flatMap(formsOf));
  const patterns = Object.values(english)
    .flatMap(formsOf)
    .filter((form) => !known.has(form) && lettersOutside(form) >= 3)
    .map((form) => new RegExp(`^${form.split(PLACEHOLDER).map(escape).join(".+")}$`, "s"));
  return texts.filter((text) => patterns.some((pattern) => pattern.test(text)));
}

// Placeholder of a value.
const PLACEHOLDER = "\u0000";

/** Expands a message to all its forms: one per choice, with a placeholder for each value. */
function formsOf(pattern: string): string[] {
  const open = pattern.indexOf("{");
  if (open < 0) return [pattern.replaceAll("#", PLACEHOLDER)];
  const close = closing(pattern, open);
  const inside = pattern.slice(open + 1, close);
  const [before, after] = [pattern.slice(0, open).replaceAll("#", PLACEHOLDER), formsOf(pattern.slice(close + 1))];
  const choices = inside.includes("{") ? branches(inside).flatMap(formsOf) : [PLACEHOLDER];
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
  throw new Error(`unclosed brace in ${text}`);
}

function lettersOutside(form: string): number {
  return form.replace(/[^\p{L}]/gu, "").length;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
