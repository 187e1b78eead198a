// Visitors: browsers with cookies of their own, watched for errors nobody may cause.
import { type Browser, type BrowserContext, type Page, test as base } from "@playwright/test";

import { ShowPage } from "./show.js";

export { expect } from "@playwright/test";

/** A person with a browser. */
export class Visitor {
  constructor(
    readonly context: BrowserContext,
    public page: Page,
  ) {}

  /** Opens a show and waits until its map is live. */
  async visit(show: string, at = ""): Promise<ShowPage> {
    const opened = new ShowPage(this.page);
    await opened.open(show, at);
    return opened;
  }

  /** The same person in another tab. */
  async newTab(): Promise<Visitor> {
    return new Visitor(this.context, await this.context.newPage());
  }

  /** Closes the tab as a person does: the page may still say goodbye. */
  async closeTab(): Promise<void> {
    await this.page.close({ runBeforeUnload: true });
  }
}

interface Visitors {
  /** Lets somebody in; everyone has cookies of their own. */
  newVisitor(): Promise<Visitor>;
  /** The one a story is about. */
  anna: Visitor;
  /** The other one. */
  ben: Visitor;
}

export const test = base.extend<Visitors>({
  newVisitor: async ({ browser }, use) => {
    const contexts: BrowserContext[] = [];
    const wrong: string[] = [];
    await use(async () => {
      const visitor = await enter(browser, wrong);
      contexts.push(visitor.context);
      return visitor;
    });
    for (const context of contexts) await context.close();
    if (wrong.length > 0) throw new Error(`the pages reported errors:\n${wrong.join("\n")}`);
  },
  anna: async ({ newVisitor }, use) => use(await newVisitor()),
  ben: async ({ newVisitor }, use) => use(await newVisitor()),
});

async function enter(browser: Browser, wrong: string[]): Promise<Visitor> {
  const context = await browser.newContext();
  context.on("weberror", (error) => wrong.push(`panic or exception: ${error.error().message}`));
  context.on("console", (message) => {
    // A refusal (423 and its like) is an answer; the browser prints it as an error all the same.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource: the server responded with a status of 4")) {
      wrong.push(`${message.page()?.url() ?? ""}: ${message.text()}`);
    }
  });
  return new Visitor(context, await context.newPage());
}
