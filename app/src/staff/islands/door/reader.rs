//! Reads QR codes in camera pictures, for browsers that cannot. A separate chunk, loaded when the camera is first
//! used, and never in browsers that read codes themselves.
//!
//! Pure except for the loading. Pictures are greyscale, a byte per pixel, rows from the top.

use std::cell::Cell;

use leptos::wasm_split::{SplitLoaderError, wasm_split};
use rqrr::{Point, PreparedImage};

/// Longest side of an examined picture, pixels. A group code (about 70 modules) that fills half its height has three
/// pixels per module; more would only take longer.
pub const MAX_SIDE_PX: u32 = 800;
/// Shortest side of an examined picture: the smallest code has 21 modules.
const MIN_SIDE_PX: u32 = 64;

/// Most attempts to load the chunk.
const MAX_ATTEMPTS: u32 = 5;
/// Pause after the first failed attempt, milliseconds. Doubles.
const FIRST_PAUSE_MS: f64 = 1_000.0;

/// Retry policy for loading the chunk. Once loaded it stays.
#[derive(Debug, Default)]
pub struct LoadRetry {
    failures: Cell<u32>,
    not_before: Cell<f64>,
}

impl LoadRetry {
    /// Returns true if an attempt is allowed now.
    #[must_use]
    pub fn is_due(&self, now_ms: f64) -> bool {
        !self.is_over() && now_ms >= self.not_before.get()
    }

    /// Records a failed attempt.
    pub fn failed(&self, now_ms: f64) {
        let failures = self.failures.get() + 1;
        self.failures.set(failures);
        let doubled = f64::from(1_u32 << (failures - 1).min(MAX_ATTEMPTS));
        self.not_before.set(now_ms + FIRST_PAUSE_MS * doubled);
    }

    /// Returns true if no further attempt is allowed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.failures.get() >= MAX_ATTEMPTS
    }
}

/// The size for an examined picture; `None` while there is none.
#[must_use]
pub fn scaled(width: u32, height: u32) -> Option<(u32, u32)> {
    let longer = width.max(height).max(1);
    let side = |side: u32| if longer > MAX_SIDE_PX { side * MAX_SIDE_PX / longer } else { side };
    let (width, height) = (side(width), side(height));
    (width.min(height) >= MIN_SIDE_PX).then_some((width, height))
}

/// Luminance of each RGBA pixel, weighted as the eye sees it.
#[must_use]
pub fn grey(colours: &[u8]) -> Vec<u8> {
    let light = |pixel: &[u8]| {
        let [red, green, blue] = [0, 1, 2].map(|part| u32::from(pixel[part]));
        ((77 * red + 150 * green + 29 * blue) >> 8) as u8
    };
    colours.chunks_exact(4).map(light).collect()
}

/// The readable codes in a greyscale picture of this width, the nearest to its middle first.
#[must_use]
pub fn codes(picture: &[u8], width: usize) -> Vec<String> {
    let height = picture.len().checked_div(width).unwrap_or_default();
    if width.min(height) < MIN_SIDE_PX as usize {
        return Vec::new();
    }
    let mut prepared = PreparedImage::prepare_from_greyscale(width, height, |x, y| picture[y * width + x]);
    let mut grids = prepared.detect_grids();
    let middle = (width as f64 / 2.0, height as f64 / 2.0);
    grids.sort_by(|one, other| distance(&one.bounds, middle).total_cmp(&distance(&other.bounds, middle)));
    let texts = grids.iter().filter_map(|grid| {
        let mut text = Vec::new();
        grid.decode_to(&mut text).ok()?;
        // An unknown text encoding of a name does not make the ticket invalid.
        Some(String::from_utf8_lossy(&text).into_owned())
    });
    texts.collect()
}

/// The readable code that is nearest to the middle of a picture, as in [`codes`].
#[must_use]
pub fn first_code(picture: &[u8], width: usize) -> Option<String> {
    codes(picture, width).into_iter().next()
}

/// Distance of the middle of a code from a point, pixels. Corners of a misread code may be anywhere.
fn distance(corners: &[Point; 4], (x, y): (f64, f64)) -> f64 {
    let across = corners.iter().map(|corner| f64::from(corner.x)).sum::<f64>() / 4.0;
    let down = corners.iter().map(|corner| f64::from(corner.y)).sum::<f64>() / 4.0;
    (across - x).hypot(down - y)
}

/// As [`codes`], in the chunk.
#[wasm_split(reader, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn read(picture: Vec<u8>, width: usize) -> Result<Vec<String>, SplitLoaderError> {
    Ok(codes(&picture, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_backs_off_and_gives_up() {
        let retry = LoadRetry::default();
        let asked = (0..600).map(|look| f64::from(look) * 200.0).filter(|now| {
            let asks = retry.is_due(*now);
            if asks {
                retry.failed(*now);
            }
            asks
        });
        assert_eq!(asked.collect::<Vec<_>>(), [0.0, 1_000.0, 3_000.0, 7_000.0, 15_000.0]);
        assert!(retry.is_over());
    }

    #[test]
    fn pictures_are_only_scaled_down_and_tiny_ones_rejected() {
        for (seen, drawn) in [
            ((1920, 1080), Some((800, 450))),
            ((1080, 1920), Some((450, 800))),
            ((640, 480), Some((640, 480))),
            ((0, 0), None),
            ((63, 400), None),
            ((4000, 10), None),
        ] {
            assert_eq!(scaled(seen.0, seen.1), drawn, "{seen:?}");
        }
    }

    #[test]
    fn luminance_is_weighted_by_colour() {
        let [white, black, green, blue] = [[255, 255, 255], [0, 0, 0], [0, 255, 0], [0, 0, 255]]
            .map(|[red, green, blue]| grey(&[red, green, blue, 255])[0]);
        assert_eq!((white, black), (255, 0));
        assert!(green > blue);
        assert_eq!(grey(&[1, 2, 3]), [0_u8; 0], "half a pixel is none");
    }

    #[test]
    fn distance_is_measured_between_middles() {
        let square =
            |left: i32, top: i32| [(0, 0), (10, 0), (10, 10), (0, 10)].map(|(x, y)| Point { x: left + x, y: top + y });
        assert_eq!(distance(&square(0, 0), (5.0, 5.0)), 0.0);
        assert_eq!(distance(&square(3, -4), (5.0, 5.0)), 5.0);
        assert!(distance(&[Point { x: i32::MAX, y: i32::MIN }; 4], (0.0, 0.0)).is_finite());
    }

    #[test]
    fn a_picture_without_a_code_yields_none() {
        for picture in [vec![], vec![255; 10], vec![0; 100 * 100], vec![255; 100 * 99 + 7]] {
            assert_eq!(first_code(&picture, 100), None);
        }
        assert_eq!(first_code(&[1, 2, 3], 0), None);
        // Deterministic noise.
        let mut state = 7_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(200 * 200)
        .collect();
        assert_eq!(first_code(&noise, 200), None);
    }
}
