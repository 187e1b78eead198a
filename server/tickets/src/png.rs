//! PNG pictures: QR codes in mails, whose programs show no SVG, and posters in previews of links.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::qr::Drawing;

/// Pixels of a module: enough to be read from the screen of another phone.
const PIXELS_PER_MODULE: usize = 6;
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The pixel format of a picture.
#[derive(Clone, Copy, Debug)]
pub enum PixelFormat {
    /// One bit a pixel, the highest first; 1 is white.
    BlackAndWhite,
    /// Three bytes a pixel.
    Rgb,
}

impl PixelFormat {
    /// The last bytes of the `IHDR` chunk: bit depth, colour type, compression, filter method, interlacing.
    const fn header(self) -> [u8; 5] {
        match self {
            Self::BlackAndWhite => [1, 0, 0, 0, 0],
            Self::Rgb => [8, 2, 0, 0, 0],
        }
    }
}

/// Encodes a PNG file. `lines` run from top to bottom; each has the bytes of `width` pixels.
pub fn file<'a>(width: u32, height: u32, format: PixelFormat, lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    for line in lines {
        // Each line begins with its filter type: 0, none. Writing to a Vec cannot fail.
        let _infallible = packed.write_all(&[0]).and_then(|()| packed.write_all(line));
    }
    let mut file = SIGNATURE.to_vec();
    chunk(&mut file, *b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &format.header()].concat());
    chunk(&mut file, *b"IDAT", &packed.finish().unwrap_or_default());
    chunk(&mut file, *b"IEND", &[]);
    file
}

/// The picture of a drawn code.
pub(super) fn of_drawing(Drawing { side, bars }: &Drawing) -> Vec<u8> {
    let pixels = side * PIXELS_PER_MODULE;
    let mut rows = vec![vec![0xFF_u8; pixels.div_ceil(8)]; *side];
    for (column, row, run) in bars {
        for pixel in column * PIXELS_PER_MODULE..(column + run) * PIXELS_PER_MODULE {
            rows[*row][pixel / 8] &= !(0x80 >> (pixel % 8));
        }
    }
    let lines = rows.iter().flat_map(|row| std::iter::repeat_n(row.as_slice(), PIXELS_PER_MODULE));
    let pixels = u32::try_from(pixels).unwrap_or(u32::MAX);
    file(pixels, pixels, PixelFormat::BlackAndWhite, lines)
}

/// Length, name, content, and the checksum of the last two.
fn chunk(file: &mut Vec<u8>, name: [u8; 4], content: &[u8]) {
    let mut checked = Crc::new();
    checked.update(&name);
    checked.update(content);
    file.extend(u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes());
    file.extend(name);
    file.extend(content);
    file.extend(checked.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::qr::drawing;

    #[test]
    fn a_picture_has_every_module_where_the_drawing_has_it() {
        let drawing = drawing("ROWLOCK1|0123456789ABCDEFGHJKMNPQRS|C7|Ana").expect("it fits");
        let file = of_drawing(&drawing);
        assert!(file.starts_with(SIGNATURE) && file.len() < 8_000, "{} bytes", file.len());
        let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize;
        let pixels = drawing.side * PIXELS_PER_MODULE;
        assert_eq!((&file[12..16], number(16), number(20)), (&b"IHDR"[..], pixels, pixels));
        let (length, content) = (number(33), 41);
        assert_eq!(&file[37..41], b"IDAT");
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&file[content..content + length]).read_to_end(&mut lines).expect("packed");
        let row_bytes = pixels.div_ceil(8) + 1;
        assert_eq!(lines.len(), row_bytes * pixels);
        let is_dark = |column: usize, row: usize| {
            let pixel = column * PIXELS_PER_MODULE;
            lines[row * PIXELS_PER_MODULE * row_bytes + 1 + pixel / 8] & (0x80 >> (pixel % 8)) == 0
        };
        for row in 0..drawing.side {
            for column in 0..drawing.side {
                let expected = drawing.bars.iter().any(|(at, of, run)| *of == row && (*at..at + run).contains(&column));
                assert_eq!(is_dark(column, row), expected, "column {column}, row {row}");
            }
        }
        assert!(file.ends_with(&[0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82]));
    }
}
