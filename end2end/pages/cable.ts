// A way to the server that can be cut and mended: what is offline then is the network, not a setting of the browser.
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

export class Cable {
  private constructor(
    private readonly server: Server,
    private readonly ends: Set<Socket>,
    private readonly port: number,
  ) {}

  static async lay(): Promise<Cable> {
    const to = new URL(process.env.BASE_URL ?? "");
    const ends = new Set<Socket>();
    const server = createServer((near) => {
      const far = connect(Number(to.port), to.hostname);
      for (const end of [near, far]) {
        ends.add(end);
        end.on("error", () => end.destroy());
        end.on("close", () => ends.delete(end));
      }
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return new Cable(server, ends, (server.address() as AddressInfo).port);
  }

  /** The server, seen through it. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async cut(): Promise<void> {
    const closed = new Promise((done) => this.server.close(done));
    for (const end of this.ends) end.destroy();
    await closed;
  }

  async mend(): Promise<void> {
    await new Promise<void>((done) => this.server.listen(this.port, "127.0.0.1", done));
  }
}
