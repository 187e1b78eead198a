// In the page: a simulated live connection, and the frames of docs/api.md.
//
// This code runs inside the browser, as an init script, so that only the product's code is between a frame
// and its paint.
export function fakeLive() {
  const Real = window.WebSocket;
  const live = { sockets: [], frameMs: 0 };
  window.live = live;

  class Fake extends EventTarget {
    static CONNECTING = 0;
    static OPEN = 1;
    static CLOSING = 2;
    static CLOSED = 3;
    readyState = 0;
    binaryType = "blob";
    onopen = null;
    onmessage = null;
    onclose = null;

    constructor(address) {
      super();
      this.url = String(address);
      live.sockets.push(this);
      setTimeout(() => {
        this.readyState = 1;
        this.onopen?.(new Event("open"));
      });
    }
    send() {}
    close() {
      this.readyState = 3;
    }
  }
  window.WebSocket = new Proxy(Real, {
    construct: (_, [address, ...rest]) => (String(address).includes("/live") ? new Fake(address) : new Real(address, ...rest)),
  });

  // Measures the page's own animation frames.
  const ask = window.requestAnimationFrame.bind(window);
  live.ask = ask;
  window.requestAnimationFrame = (react) =>
    ask((now) => {
      const began = performance.now();
      react(now);
      live.frameMs += performance.now() - began;
    });

  const put = (bytes, number) => {
    while (number >= 0x80) {
      bytes.push((number % 0x80) | 0x80);
      number = Math.floor(number / 0x80);
    }
    bytes.push(number);
  };
  live.snapshot = (states) => {
    const bytes = [1];
    for (const number of [1, 1, Date.now(), states.length]) put(bytes, number);
    bytes.push(0);
    for (let seat = 0; seat < states.length; seat += 4) {
      bytes.push(states[seat] | ((states[seat + 1] ?? 0) << 2) | ((states[seat + 2] ?? 0) << 4) | ((states[seat + 3] ?? 0) << 6));
    }
    return new Uint8Array(bytes).buffer;
  };
  live.noHolds = () => {
    const bytes = [3];
    put(bytes, Date.now());
    return new Uint8Array(bytes).buffer;
  };
  live.version = 1;
  /** Encodes a DELTA of sorted [seat, state] pairs. */
  live.delta = (changes) => {
    const bytes = [2];
    put(bytes, live.version);
    put(bytes, (live.version += 1));
    let next = 0;
    for (const [seat, state] of changes) {
      put(bytes, (seat - next) * 4 + state);
      next = seat + 1;
    }
    return new Uint8Array(bytes).buffer;
  };
  live.receive = (buffer) => {
    const socket = live.sockets.at(-1);
    socket.onmessage?.(new MessageEvent("message", { data: buffer }));
  };
  // One channel for all turns: creating one costs a fifth of an empty frame and would be in the figures of both.
  const tasks = [];
  const channel = new MessageChannel();
  channel.port1.onmessage = () => tasks.shift()?.();
  /** Resolves in the next task, after earlier work and its microtasks. */
  live.task = () =>
    new Promise((resolve) => {
      tasks.push(resolve);
      channel.port2.postMessage(0);
    });
  /** Resolves after the next frame: style, layout and paint run between its callbacks and the next task. */
  live.frame = () => new Promise((resolve) => ask(() => live.task().then(resolve)));

  /** Changes the state of `count` distinct seats in `states`. Returns the sorted [seat, state] pairs. */
  live.change = (states, count) => {
    const seats = new Set();
    while (seats.size < count) seats.add(Math.floor(Math.random() * states.length));
    return [...seats]
      .sort((one, other) => one - other)
      .map((seat) => {
        states[seat] = (states[seat] + 1 + Math.floor(Math.random() * 2)) % 3;
        return [seat, states[seat]];
      });
  };
}

/** In the page: the baseline, a simple seat map with an SVG node per seat, which reads the same frames. */
export function nodePerSeat(dots) {
  const SVG = "http://www.w3.org/2000/svg";
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("#baseline .s0{fill:#8ab8e8}#baseline .s1{fill:#594d43}#baseline .s2{fill:#362f2a}#baseline .s3{fill:#2a2420}");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const map = document.querySelector(".overview-map").getBoundingClientRect();
  const svg = document.createElementNS(SVG, "svg");
  svg.id = "baseline";
  svg.setAttribute("viewBox", `0 0 ${dots.width} ${dots.height}`);
  svg.setAttribute("width", String(map.width));
  svg.setAttribute("height", String(map.height));
  const nodes = dots.places.map(([x, y], seat) => {
    const node = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ x: x - 8, y: y - 8, width: 16, height: 16, class: `s${window.states[seat]}` })) node.setAttribute(name, String(value));
    svg.append(node);
    return node;
  });
  document.body.prepend(svg);

  const number = (bytes, cursor) => {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = bytes[cursor.at++];
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  return {
    svg,
    /** Shows these states, which it missed during other turns. */
    catchUp: (states) => nodes.forEach((node, seat) => node.setAttribute("class", `s${states[seat]}`)),
    /** Applies a DELTA. */
    apply: (buffer) => {
      const bytes = new Uint8Array(buffer);
      const cursor = { at: 1 };
      number(bytes, cursor);
      number(bytes, cursor);
      for (let next = 0; cursor.at < bytes.length; ) {
        const step = number(bytes, cursor);
        const seat = next + Math.floor(step / 4);
        nodes[seat].setAttribute("class", `s${step % 4}`);
        next = seat + 1;
      }
    },
  };
}

/** In the page: decodes the seat positions of /dots. */
export function readDots(bytes) {
  const places = [];
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  const step = () => {
    const value = number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  let [x, y] = [0, 0];
  while (at < bytes.length) {
    at += 1;
    for (let left = number(); left > 0; left -= 1) {
      x += step();
      y += step();
      places.push([x, y]);
    }
  }
  return places;
}
