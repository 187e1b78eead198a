// Visitors: browsers with cookies of their own, watched for whatever a page says that nobody should read.
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page, test as base } from "@playwright/test";

import { ShowPage } from "./show.js";

export { expect } from "@playwright/test";

/** A person with a browser. */
export class Visitor {
  constructor(
    readonly context: BrowserContext,
    public page: Page,
    private readonly said: Said,
  ) {}

  /** Opens a show and waits until its map is live. */
  async visit(show: string, at = ""): Promise<ShowPage> {
    const opened = new ShowPage(this.page);
    await opened.open(show, at);
    return opened;
  }

  /** The same person in another tab. */
  async newTab(): Promise<Visitor> {
    return new Visitor(this.context, await this.context.newPage(), this.said);
  }

  /** Closes the tab as a person does: the page may still say goodbye. */
  async closeTab(): Promise<void> {
    await this.page.close({ runBeforeUnload: true });
  }

  /** From here on this visitor's network is cut on purpose: the browser itself complains, and may. */
  mayBeCutOff(): void {
    this.said.cutOff = true;
  }
}

interface Visitors {
  /** Lets somebody in; everyone has cookies of their own. */
  newVisitor(options?: BrowserContextOptions): Promise<Visitor>;
  /** The one a story is about. */
  anna: Visitor;
  /** The other one. */
  ben: Visitor;
}

export const test = base.extend<Visitors>({
  newVisitor: async ({ browser }, use) => {
    const everyone: Said[] = [];
    const contexts: BrowserContext[] = [];
    await use(async (options) => {
      const said = new Said();
      const visitor = await enter(browser, said, options);
      everyone.push(said);
      contexts.push(visitor.context);
      return visitor;
    });
    for (const context of contexts) await context.close();
    const wrong = everyone.flatMap((said) => said.lines);
    if (wrong.length > 0) throw new Error(`the pages said on the console:\n${wrong.join("\n")}`);
  },
  anna: async ({ newVisitor }, use) => use(await newVisitor()),
  ben: async ({ newVisitor }, use) => use(await newVisitor()),
});

/** What the pages of a visitor said on the console: nothing, if all is well. */
class Said {
  readonly lines: string[] = [];
  cutOff = false;

  /** The browser's own remarks on answers that are answers: a refusal (423 and its like), a page that is not there. */
  private isAnAnswer(text: string): boolean {
    return /^Failed to load resource: the server responded with a status of (4\d\d|503)/.test(text);
  }

  /** The browser's own remark on having forgotten what it was asked to, on signing out. */
  private isForgetting(text: string): boolean {
    return /^Clear-Site-Data header on '[^']*': Cleared data types:/.test(text);
  }

  /** The browser's own remarks on a network that is not there. */
  private isTheNetwork(text: string): boolean {
    // The last one: a worker that is asked whether there is a newer one of it.
    return /net::ERR_(INTERNET_DISCONNECTED|CONNECTION_(REFUSED|RESET|CLOSED)|EMPTY_RESPONSE|FAILED)|WebSocket connection to|error occurred when fetching the script/.test(text);
  }

  hear(text: string): void {
    if (this.isAnAnswer(text) || this.isForgetting(text) || (this.cutOff && this.isTheNetwork(text))) return;
    this.lines.push(text);
  }
}

async function enter(browser: Browser, said: Said, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext(options);
  context.on("weberror", (error) => said.hear(`panic or exception: ${error.error().message}`));
  // Warnings and notes count as well: what is printed there is either wrong or left behind.
  context.on("console", (message) => said.hear(`${message.text()} (${message.type()} at ${message.page()?.url() ?? ""})`));
  return new Visitor(context, await context.newPage(), said);
}
