// Visitors: separate browser contexts. A console message on any of their pages fails the test.
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page, test as base } from "@playwright/test";

import { ShowPage } from "./show.js";

export { expect } from "@playwright/test";

/** A visitor with a browser context. */
export class Visitor {
  constructor(
    readonly context: BrowserContext,
    public page: Page,
    private readonly log: ConsoleLog,
  ) {}

  /** Opens a show and waits until its map is live. */
  async visit(show: string, at = ""): Promise<ShowPage> {
    const opened = new ShowPage(this.page);
    await opened.open(show, at);
    return opened;
  }

  /** Opens another tab of the same visitor. */
  async newTab(): Promise<Visitor> {
    return new Visitor(this.context, await this.context.newPage(), this.log);
  }

  /** Closes the tab like a person does: the page's unload handlers run. */
  async closeTab(): Promise<void> {
    await this.page.close({ runBeforeUnload: true });
  }

  /** Allows the browser's messages about network errors from now on. */
  allowNetworkErrors(): void {
    this.log.cutOff = true;
  }
}

interface Visitors {
  /** Creates a visitor with separate cookies. */
  newVisitor(options?: BrowserContextOptions): Promise<Visitor>;
  /** The main visitor of a story. */
  anna: Visitor;
  /** The second visitor. */
  ben: Visitor;
}

export const test = base.extend<Visitors>({
  newVisitor: async ({ browser }, use) => {
    const logs: ConsoleLog[] = [];
    const contexts: BrowserContext[] = [];
    await use(async (options) => {
      const log = new ConsoleLog();
      const visitor = await enter(browser, log, options);
      logs.push(log);
      contexts.push(visitor.context);
      return visitor;
    });
    for (const context of contexts) await context.close();
    const messages = logs.flatMap((log) => log.lines);
    if (messages.length > 0) throw new Error(`unexpected console messages:\n${messages.join("\n")}`);
  },
  anna: async ({ newVisitor }, use) => use(await newVisitor()),
  ben: async ({ newVisitor }, use) => use(await newVisitor()),
});

/** The unexpected console messages of a visitor's pages. */
class ConsoleLog {
  readonly lines: string[] = [];
  cutOff = false;

  /** Matches the browser's messages about expected error statuses, such as 423 or 404. */
  private isExpectedStatus(text: string): boolean {
    return /^Failed to load resource: the server responded with a status of (4\d\d|503)/.test(text);
  }

  /** Matches the browser's message about cleared site data, on signing out. */
  private isClearedSiteData(text: string): boolean {
    return /^Clear-Site-Data header on '[^']*': Cleared data types:/.test(text);
  }

  /** Matches the browser's messages about a missing network. */
  private isNetworkError(text: string): boolean {
    // The last pattern is the update check of a service worker.
    return /net::ERR_(INTERNET_DISCONNECTED|CONNECTION_(REFUSED|RESET|CLOSED)|EMPTY_RESPONSE|FAILED)|WebSocket connection to|error occurred when fetching the script/.test(text);
  }

  record(text: string): void {
    if (this.isExpectedStatus(text) || this.isClearedSiteData(text) || (this.cutOff && this.isNetworkError(text))) return;
    this.lines.push(text);
  }
}

async function enter(browser: Browser, log: ConsoleLog, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext(options);
  context.on("weberror", (error) => log.record(`panic or exception: ${error.error().message}`));
  // Warnings and notes count as well: each is a defect or a left-over.
  context.on("console", (message) => log.record(`${message.text()} (${message.type()} at ${message.page()?.url() ?? ""})`));
  return new Visitor(context, await context.newPage(), log);
}
