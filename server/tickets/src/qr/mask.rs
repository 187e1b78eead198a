//! Chooses the mask of a QR code: of eight, the one with the lowest penalty (ISO/IEC 18004, section 7.8.3).
//!
//! The crate `qrcode` chooses the same mask, but compares module by module and allocates for each, which takes most of
//! the time of a code. Here a line of modules is a number, and bit operations compare all its modules at once.

use qrcode::Color;
use qrcode::canvas::{Canvas, MaskPattern};

const MASKS: [MaskPattern; 8] = [
    MaskPattern::Checkerboard,
    MaskPattern::HorizontalLines,
    MaskPattern::VerticalLines,
    MaskPattern::DiagonalLines,
    MaskPattern::LargeCheckerboard,
    MaskPattern::Fields,
    MaskPattern::Diamonds,
    MaskPattern::Meadow,
];

/// The modules of the canvas with the best mask, row by row. The canvas is at most 128 modules wide.
pub(super) fn best_masked(canvas: &Canvas, width: usize) -> Vec<Color> {
    let masked = MASKS.into_iter().map(|mask| {
        let mut canvas = canvas.clone();
        canvas.apply_mask(mask);
        canvas.into_colors()
    });
    masked.min_by_key(|modules| penalty(modules, width)).unwrap_or_default()
}

fn penalty(modules: &[Color], width: usize) -> u32 {
    let (mut rows, mut columns) = (Vec::with_capacity(width), vec![0_u128; width]);
    for modules in modules.chunks(width) {
        let mut row = 0_u128;
        for (column, module) in columns.iter_mut().zip(modules) {
            let dark = u128::from(*module == Color::Dark);
            row = (row << 1) | dark;
            *column = (*column << 1) | dark;
        }
        rows.push(row);
    }
    let lines: u32 = rows.iter().chain(&columns).map(|line| line_penalty(*line, width)).sum();
    let blocks: u32 = rows.windows(2).map(|pair| block_count(pair[0], pair[1], width)).sum();
    let dark = modules.iter().filter(|module| **module == Color::Dark).count();
    let imbalance = (dark * 200 / modules.len()).abs_diff(100);
    lines + 3 * blocks + imbalance as u32
}

/// Modules that equal the next one of their line.
const fn alike(line: u128, width: usize) -> u128 {
    !(line ^ (line >> 1)) & ((1_u128 << (width - 1)) - 1)
}

/// Squares of two by two equal modules in two rows.
const fn block_count(row: u128, next: u128, width: usize) -> u32 {
    (alike(row, width) & alike(next, width) & !(row ^ next)).count_ones()
}

/// Three points for five equal modules in a row, and one for each more; forty for a sequence that looks like a finder
/// pattern: 1011101 with four light modules on one side. Outside the code all is light.
const fn line_penalty(line: u128, width: usize) -> u32 {
    let alike = alike(line, width);
    let five = alike & (alike >> 1) & (alike >> 2) & (alike >> 3);
    let runs = five & !(five << 1);
    let finders = line & !(line >> 1) & (line >> 2) & (line >> 3) & (line >> 4) & !(line >> 5) & (line >> 6);
    let dark_before = (line << 1) | (line << 2) | (line << 3) | (line << 4);
    let dark_after = (line >> 7) | (line >> 8) | (line >> 9) | (line >> 10);
    five.count_ones() + 2 * runs.count_ones() + 40 * (finders & !(dark_before & dark_after)).count_ones()
}

#[cfg(test)]
mod tests {
    use super::super::{LEVEL, MAX_TEXT_BYTES, modules_of};
    use qrcode::QrCode;

    #[test]
    fn the_modules_are_those_of_the_crate_that_encodes_the_text() {
        for letters in ["0", "ROWLOCK1|", "Zoë山田", "WW  ", "\u{0}"] {
            for length in (1..=MAX_TEXT_BYTES).step_by(57).chain([MAX_TEXT_BYTES]) {
                let text = letters.repeat((length / letters.len()).max(1));
                let code = QrCode::with_error_correction_level(&text, LEVEL).expect("it fits");
                let (width, modules) = modules_of(&text).expect("it fits");
                assert_eq!((width, modules), (code.width(), code.into_colors()), "{text}");
            }
        }
    }
}
