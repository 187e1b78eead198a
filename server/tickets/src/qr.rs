//! A QR code as bars to draw, and as SVG text, dark on white whatever the page's theme: scanners want it so.

use std::fmt::{self, Display, Write};

use qrcode::{Color, EcLevel, QrCode};

/// Empty modules around the code; the standard requires four.
const QUIET_ZONE: usize = 4;
/// Maximum length of the text, bytes: a phone can still scan it from a phone's screen.
pub const MAX_TEXT_BYTES: usize = 400;

/// The text does not fit a code that phones read.
#[derive(Debug, thiserror::Error)]
#[error("a QR code of {0} bytes would be too dense")]
pub struct TooLong(usize);

/// A QR code, quiet zone included, in modules from its top left corner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// Width and height, modules.
    pub side: usize,
    /// Dark bars one module high: column, row and length of each.
    pub bars: Vec<(usize, usize, usize)>,
}

/// The QR code of `text`.
///
/// # Errors
/// [`TooLong`] above [`MAX_TEXT_BYTES`].
pub fn drawing(text: &str) -> Result<Drawing, TooLong> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(TooLong(text.len()));
    }
    // Level M survives a scratched screen and keeps the modules large.
    let code = QrCode::with_error_correction_level(text, EcLevel::M).map_err(|_| TooLong(text.len()))?;
    let width = code.width();
    let mut bars = Vec::new();
    for (row, modules) in code.to_colors().chunks(width).enumerate() {
        let mut column = 0;
        while column < width {
            let run = modules[column..].iter().take_while(|module| **module == Color::Dark).count();
            if run > 0 {
                bars.push((column + QUIET_ZONE, row + QUIET_ZONE, run));
            }
            column += run.max(1);
        }
    }
    Ok(Drawing { side: width + 2 * QUIET_ZONE, bars })
}

/// The QR code of `text` as an SVG element. It scales to its box; `label` is its text for screen readers.
///
/// # Errors
/// [`TooLong`] above [`MAX_TEXT_BYTES`].
pub fn svg(text: &str, label: &str) -> Result<String, TooLong> {
    let Drawing { side, bars } = drawing(text)?;
    let mut path = String::new();
    for (column, row, run) in bars {
        // Writing to a String cannot fail.
        let _infallible = write!(path, "M{column} {row}h{run}v1h-{run}z");
    }
    let label = Escaped(label);
    Ok(format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" shape-rendering="crispEdges" role="img" aria-label="{label}"><rect width="{side}" height="{side}" fill="#fff"/><path d="{path}" fill="#000"/></svg>"##
    ))
}

/// Text that is made safe inside HTML and its attributes where it is written.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_black_on_white_with_a_quiet_zone_of_four() {
        let svg = svg("ROWLOCK1|0123456789ABCDEFGHJKMNPQRS|C7|Ana", "Ticket for C7").expect("it fits");
        assert!(svg.contains(r#"shape-rendering="crispEdges""#));
        assert!(svg.contains(r##"fill="#fff"/>"##) && svg.contains(r##"fill="#000"/>"##));
        // The finder pattern's top edge: seven modules, right after the quiet zone.
        assert!(svg.contains(r#"d="M4 4h7v1h-7z"#), "{svg}");
        assert!(!svg.contains("style="));
    }

    #[test]
    fn every_script_fits_and_a_novel_does_not() {
        for text in ["ليلى الشامي", "山田太郎", "👩‍👩‍👧", "Zoë"] {
            assert!(svg(text, text).is_ok(), "{text}");
        }
        assert!(svg(&"x".repeat(MAX_TEXT_BYTES), "").is_ok());
        assert!(svg(&"x".repeat(MAX_TEXT_BYTES + 1), "").is_err());
    }

    #[test]
    fn a_hostile_label_stays_text() {
        let svg = svg("x", r#""><script>alert('1')</script>"#).expect("it fits");
        assert!(!svg.contains("<script"), "{svg}");
    }
}
