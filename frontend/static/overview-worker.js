// Worker that paints the seats of a large room as dots on a canvas transferred from the page. The page sends changed dots,
// and the cost of a frame stays off the page's own thread (docs/decisions/0055).
//
// Messages are either the layout of a new picture (the first one carries the canvas), or dots: three numbers each, x and y
// on the plan and an index into the colours. Each message is answered: `true` if it was accepted, `false` if this worker
// cannot paint. The answer does not wait for a frame, because hidden pages have none. The page sends the next message
// after the answer, so messages do not pile up. app/src/seat_map/large_rooms/canvas.rs paints the same picture in browsers
// without transferable canvases; a browser test compares the two.

// Height in pixels of the bands by which changes are tracked.
const BAND_PX = 32;

let canvas = null;
let context = null;
// The picture in memory, its pixels and colours as 32-bit integers, and the changed area per band that is not shown yet.
let picture = null;
let pixels = null;
let colours = null;
let bands = [];
// True until this picture has received dots.
let isEmpty = true;
// Pixels per unit of the plan, and width of a dot in pixels.
let scale = 1;
let side = 1;
// Whether a frame is requested.
let isFrameRequested = false;

self.onmessage = ({ data }) => {
  if (data instanceof Uint8Array) paintAll(new Int32Array(data.buffer));
  else startPicture(data);
  self.postMessage(Boolean(context));
};

/** Starts a new picture. The canvas shows the previous one until dots arrive, so that it never flashes empty. */
function startPicture(layout) {
  if (layout.canvas) {
    canvas = layout.canvas;
    context = canvas.getContext("2d");
    canvas.addEventListener("contextrestored", showAll);
  }
  picture = new ImageData(layout.width, layout.height);
  // Colours arrive as bytes, so both have this machine's byte order.
  pixels = new Uint32Array(picture.data.buffer);
  colours = new Uint32Array(layout.colours.buffer);
  ({ scale, side } = layout);
  isEmpty = true;
  bands = [whole()];
}

function whole() {
  return { top: 0, bottom: picture.height, left: 0, right: picture.width };
}

function paintAll(dots) {
  if (!picture) return;
  isEmpty = false;
  for (let at = 0; at + 2 < dots.length; at += 3) paint(dots[at], dots[at + 1], colours[dots[at + 2]]);
  show();
}

/** Paints a dot over the previous pixels, clipped to the picture. */
function paint(x, y, colour) {
  const { width, height } = picture;
  const [left, right] = clippedRange(x, width);
  const [top, bottom] = clippedRange(y, height);
  if (colour === undefined || left >= right || top >= bottom) return;
  for (let row = top; row < bottom; row += 1) pixels.fill(colour, row * width + left, row * width + right);
  for (let number = Math.floor(top / BAND_PX); number <= Math.floor((bottom - 1) / BAND_PX); number += 1) {
    bands[number] ??= { top: number * BAND_PX, bottom: Math.min((number + 1) * BAND_PX, height), left, right };
    bands[number].left = Math.min(bands[number].left, left);
    bands[number].right = Math.max(bands[number].right, right);
  }
}

/** Returns the first pixel of a dot and the one after its last, clipped to `limit`. */
function clippedRange(centre, limit) {
  // Rounds like raster.rs: `Math.round` and Rust's `round` differ for negative halves.
  const start = Math.floor(centre * scale - side / 2 + 0.5);
  return [Math.min(Math.max(start, 0), limit), Math.min(Math.max(start + side, 0), limit)];
}

/** Requests a frame that shows all changes until then. */
function show() {
  if (isFrameRequested) return;
  isFrameRequested = true;
  self.requestAnimationFrame(() => {
    isFrameRequested = false;
    if (isEmpty) return;
    // Setting the size clears the canvas; the whole new picture is shown then.
    if (canvas.width !== picture.width) canvas.width = picture.width;
    if (canvas.height !== picture.height) canvas.height = picture.height;
    for (const { top, bottom, left, right } of takeAreas()) context.putImageData(picture, 0, 0, left, top, right - left, bottom - top);
  });
}

/** Shows the whole picture, after the browser has lost the content of the canvas. */
function showAll() {
  bands = [whole()];
  show();
}

/** Returns and clears the changed areas; adjacent bands are merged. */
function takeAreas() {
  const found = [];
  for (const band of bands.filter(Boolean)) {
    const above = found.at(-1);
    if (above && above.bottom >= band.top) {
      above.bottom = Math.max(above.bottom, band.bottom);
      above.left = Math.min(above.left, band.left);
      above.right = Math.max(above.right, band.right);
    } else {
      found.push(band);
    }
  }
  bands = [];
  return found;
}
