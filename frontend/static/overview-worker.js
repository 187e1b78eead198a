// Paints the seats of a large room as dots, on a canvas of the page that was handed over to it: the page says which dots
// changed, and what a frame costs is not spent on the page's own thread (docs/decisions/0055).
//
// Told are, in this order, what the picture is like (with the first of these the canvas), and dots: three numbers each, its
// place right and down on the plan and which of the colours it has. Each is answered: `true` when it was taken, `false` when
// nothing can be painted here; without waiting for a frame, of which a page that is hidden has none. The page says no more
// before it has its answer, so that nothing piles up. The same picture is made by app/src/seat_map/large_rooms/raster.rs where nobody can
// hand over a canvas; a test of the browser compares the two.

// What changed is noted for bands of this many rows of pixels each.
const BAND_PX = 32;

let canvas = null;
let context = null;
// The picture in memory, its pixels as whole numbers, the colours alike, and which part of it the canvas does not show yet.
let picture = null;
let pixels = null;
let colours = null;
let bands = [];
// Whether no dot of this picture came yet.
let bare = true;
// Pixels in a unit of the plan, and pixels across a dot.
let scale = 1;
let side = 1;
// Whether the next frame will show what changed.
let asked = false;

self.onmessage = ({ data }) => {
  if (data instanceof Uint8Array) paintAll(new Int32Array(data.buffer));
  else become(data);
  self.postMessage(Boolean(context));
};

/** Begins another picture. The canvas shows the one before until dots of this one come: never an empty one between. */
function become(looks) {
  if (looks.canvas) {
    canvas = looks.canvas;
    context = canvas.getContext("2d");
    canvas.addEventListener("contextrestored", showAll);
  }
  picture = new ImageData(looks.width, looks.height);
  // As bytes come, in whatever order this machine has them.
  pixels = new Uint32Array(picture.data.buffer);
  colours = new Uint32Array(looks.colours.buffer);
  ({ scale, side } = looks);
  bare = true;
  bands = [whole()];
}

function whole() {
  return { top: 0, bottom: picture.height, left: 0, right: picture.width };
}

function paintAll(dots) {
  if (!picture) return;
  bare = false;
  for (let at = 0; at + 2 < dots.length; at += 3) paint(dots[at], dots[at + 1], colours[dots[at + 2]]);
  show();
}

/** Paints a dot over whatever was there. What lies outside is left out. */
function paint(x, y, colour) {
  const { width, height } = picture;
  const [left, right] = within(x, width);
  const [top, bottom] = within(y, height);
  if (colour === undefined || left >= right || top >= bottom) return;
  for (let row = top; row < bottom; row += 1) pixels.fill(colour, row * width + left, row * width + right);
  for (let number = Math.floor(top / BAND_PX); number <= Math.floor((bottom - 1) / BAND_PX); number += 1) {
    bands[number] ??= { top: number * BAND_PX, bottom: Math.min((number + 1) * BAND_PX, height), left, right };
    bands[number].left = Math.min(bands[number].left, left);
    bands[number].right = Math.max(bands[number].right, right);
  }
}

/** From where to where a dot is, of so many pixels. */
function within(centre, limit) {
  // As raster.rs rounds: `Math.round` and Rust's part where a dot ends half a pixel outside.
  const start = Math.floor(centre * scale - side / 2 + 0.5);
  return [Math.min(Math.max(start, 0), limit), Math.min(Math.max(start + side, 0), limit)];
}

/** Shows what changed in the next frame, once for all that happens until then. */
function show() {
  if (asked) return;
  asked = true;
  self.requestAnimationFrame(() => {
    asked = false;
    if (bare) return;
    // Setting them empties the canvas, and comes with a picture that is new as a whole.
    if (canvas.width !== picture.width) canvas.width = picture.width;
    if (canvas.height !== picture.height) canvas.height = picture.height;
    for (const { top, bottom, left, right } of areas()) context.putImageData(picture, 0, 0, left, top, right - left, bottom - top);
  });
}

/** The browser had lost what the canvas showed. */
function showAll() {
  bands = [whole()];
  show();
}

/** What changed since this was asked last: neighbouring bands are one area. */
function areas() {
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
