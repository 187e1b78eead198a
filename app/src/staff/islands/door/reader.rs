//! Reads QR codes in pictures of the camera, where the browser does not do it. A part of its own: it is loaded when the
//! camera is first used, and by nobody whose browser reads codes itself.
//!
//! Pure but for the loading. Pictures are grey, a byte a pixel, rows from the top.

use std::cell::Cell;

use leptos::wasm_split::{SplitLoaderError, wasm_split};
use rqrr::PreparedImage;

/// The longer side of a picture that is looked at, pixels: the code of a party (about 70 modules) that fills half its
/// height has three pixels a module, and more would only take longer.
pub const MAX_SIDE_PX: u32 = 800;
/// The shorter side of a picture that is worth looking at: the smallest code has 21 modules.
const MIN_SIDE_PX: u32 = 64;

/// The part that reads is asked for so often at most.
const MAX_TRIES: u32 = 5;
/// First pause after it did not come, milliseconds; doubles.
const FIRST_PAUSE_MS: f64 = 1_000.0;

/// How often the part that reads is asked for when it does not come. Once it has come it stays.
#[derive(Debug, Default)]
pub struct Patience {
    failures: Cell<u32>,
    not_before: Cell<f64>,
}

impl Patience {
    /// Whether it may be asked for now.
    #[must_use]
    pub fn may_ask(&self, now_ms: f64) -> bool {
        !self.is_over() && now_ms >= self.not_before.get()
    }

    /// It did not come.
    pub fn failed(&self, now_ms: f64) {
        let failures = self.failures.get() + 1;
        self.failures.set(failures);
        let doubled = f64::from(1_u32 << (failures - 1).min(MAX_TRIES));
        self.not_before.set(now_ms + FIRST_PAUSE_MS * doubled);
    }

    /// Whether it is not asked for any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.failures.get() >= MAX_TRIES
    }
}

/// The size to which a picture of the camera is drawn; `None` where there is nothing to be seen yet.
#[must_use]
pub fn scaled(width: u32, height: u32) -> Option<(u32, u32)> {
    let longer = width.max(height).max(1);
    let side = |side: u32| if longer > MAX_SIDE_PX { side * MAX_SIDE_PX / longer } else { side };
    let (width, height) = (side(width), side(height));
    (width.min(height) >= MIN_SIDE_PX).then_some((width, height))
}

/// How light each pixel is, of red, green, blue and alpha a pixel: as the eye weighs them.
#[must_use]
pub fn grey(colours: &[u8]) -> Vec<u8> {
    let light = |pixel: &[u8]| {
        let [red, green, blue] = [0, 1, 2].map(|part| u32::from(pixel[part]));
        ((77 * red + 150 * green + 29 * blue) >> 8) as u8
    };
    colours.chunks_exact(4).map(light).collect()
}

/// The first code in a grey picture of this width that can be read.
#[must_use]
pub fn first_code(picture: &[u8], width: usize) -> Option<String> {
    let height = picture.len().checked_div(width)?;
    if width.min(height) < MIN_SIDE_PX as usize {
        return None;
    }
    let mut prepared = PreparedImage::prepare_from_greyscale(width, height, |x, y| picture[y * width + x]);
    prepared.detect_grids().iter().find_map(|grid| {
        let mut text = Vec::new();
        grid.decode_to(&mut text).ok()?;
        // Whose name is written in no way we know has a good ticket all the same.
        Some(String::from_utf8_lossy(&text).into_owned())
    })
}

/// The same, by the part that is loaded for it.
#[wasm_split(reader, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn read(picture: Vec<u8>, width: usize) -> Result<Option<String>, SplitLoaderError> {
    Ok(first_code(&picture, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_is_asked_for_less_and_less_and_then_not_at_all() {
        let patience = Patience::default();
        let asked = (0..600).map(|look| f64::from(look) * 200.0).filter(|now| {
            let asks = patience.may_ask(*now);
            if asks {
                patience.failed(*now);
            }
            asks
        });
        assert_eq!(asked.collect::<Vec<_>>(), [0.0, 1_000.0, 3_000.0, 7_000.0, 15_000.0]);
        assert!(patience.is_over());
    }

    #[test]
    fn pictures_are_scaled_down_never_up_and_nothing_is_no_picture() {
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
    fn white_is_white_and_green_is_lighter_than_blue() {
        let [white, black, green, blue] = [[255, 255, 255], [0, 0, 0], [0, 255, 0], [0, 0, 255]]
            .map(|[red, green, blue]| grey(&[red, green, blue, 255])[0]);
        assert_eq!((white, black), (255, 0));
        assert!(green > blue);
        assert_eq!(grey(&[1, 2, 3]), [0_u8; 0], "half a pixel is none");
    }

    #[test]
    fn a_picture_without_a_code_says_nothing_whatever_it_is() {
        for picture in [vec![], vec![255; 10], vec![0; 100 * 100], vec![255; 100 * 99 + 7]] {
            assert_eq!(first_code(&picture, 100), None);
        }
        assert_eq!(first_code(&[1, 2, 3], 0), None);
        // Noise, always the same.
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
