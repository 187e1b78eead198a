// A TCP proxy to the server that can be stopped and restarted, to cut the network instead of setting the browser offline.
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

export class NetworkProxy {
  private constructor(
    private readonly server: Server,
    private readonly sockets: Set<Socket>,
    private readonly port: number,
  ) {}

  static async start(): Promise<NetworkProxy> {
    const to = new URL(process.env.BASE_URL ?? "");
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const far = connect(Number(to.port), to.hostname);
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on("error", () => socket.destroy());
        socket.on("close", () => sockets.delete(socket));
      }
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return new NetworkProxy(server, sockets, (server.address() as AddressInfo).port);
  }

  /** The server's URL through the proxy. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async disconnect(): Promise<void> {
    const closed = new Promise((done) => this.server.close(done));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  async reconnect(): Promise<void> {
    await new Promise<void>((done) => this.server.listen(this.port, "127.0.0.1", done));
  }
}
