//! Writes files of the site, each with a compressed `.br` and `.gz` sibling, so that the server does not compress per
//! request.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Extensions to compress; pictures and fonts are already compressed.
const COMPRESSIBLE: [&str; 6] = ["css", "js", "json", "svg", "txt", "wasm"];
/// Brotli window size, bytes, as a power of two.
const BROTLI_WINDOW: u32 = 22;

/// How strongly files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As small as possible, for delivery.
    Best,
    /// In a second or two, for `cargo xtask run`.
    Quick,
    /// Not at all, for `cargo xtask dev`.
    None,
}

impl Compression {
    /// Parses a name of the command line.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "best" => Some(Self::Best),
            "quick" => Some(Self::Quick),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// Returns the quality of brotli (0 to 11) and of gzip (0 to 9); `None` to compress nothing.
    fn quality(self) -> Option<(u32, u32)> {
        match self {
            Self::Best => Some((11, 9)),
            Self::Quick => Some((5, 6)),
            Self::None => None,
        }
    }
}

/// Copies a file and writes its compressed siblings.
pub fn copy(from: &Path, to: &Path, compression: Compression) -> Result<()> {
    write(to, &std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?, compression)
}

/// Writes a file and its compressed siblings, each atomically: a server may be reading them.
pub fn write(file: &Path, bytes: &[u8], compression: Compression) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let (brotli_file, gzip_file) = (with_ending(file, "br"), with_ending(file, "gz"));
    for sibling in [&brotli_file, &gzip_file] {
        // A stale sibling would be served instead of the new file.
        if sibling.exists() {
            std::fs::remove_file(sibling)?;
        }
    }
    replace(file, bytes)?;
    let Some((brotli_quality, gzip_quality)) = compression.quality() else { return Ok(()) };
    if !COMPRESSIBLE.iter().any(|ending| has_extension(file, ending)) {
        return Ok(());
    }
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, brotli_quality, BROTLI_WINDOW);
    brotli.write_all(bytes)?;
    replace(&brotli_file, &brotli.into_inner())?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(gzip_quality));
    gzip.write_all(bytes)?;
    replace(&gzip_file, &gzip.finish()?)
}

/// Removes files that earlier builds left in a folder: a stale file would enter every later version and its fingerprint,
/// and the same source would be a different version on another machine. Removes those that are neither in `made` nor the
/// compressed form of one that is. Only files for which `is_ours` returns `true`, called with the path below the folder.
pub fn remove_stale(folder: &Path, made: &BTreeSet<PathBuf>, is_ours: impl Fn(&Path) -> bool) -> Result<()> {
    for file in files_below(folder)? {
        let is_packed = has_extension(&file, "br") || has_extension(&file, "gz");
        let is_made = made.contains(&file) || (is_packed && made.contains(&file.with_extension("")));
        if !is_made && is_ours(file.strip_prefix(folder)?) {
            std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    Ok(())
}

/// Returns all files below a folder; none if it does not exist.
pub fn files_below(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                files.append(&mut files_below(&path)?);
            } else {
                files.insert(path);
            }
        }
    }
    Ok(files)
}

pub fn has_extension(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|own| own == ending)
}

fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let new = with_ending(file, "new");
    std::fs::write(&new, bytes).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, file)?;
    Ok(())
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_files_are_removed_and_files_of_others_stay() {
        let folder = std::env::temp_dir().join(format!("rowlock-leftovers-{}", std::process::id()));
        for file in ["a.js", "a.js.br", "old.js", "old.js.gz", "a.js.new", "parts/old.wasm", "others.js"] {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(path, "").expect("written");
        }
        let made = BTreeSet::from([folder.join("a.js")]);
        remove_stale(&folder, &made, |file| file != Path::new("others.js")).expect("removed");
        let left = files_below(&folder).expect("listed");
        assert_eq!(left, BTreeSet::from(["a.js", "a.js.br", "others.js"].map(|file| folder.join(file))));
        std::fs::remove_dir_all(&folder).expect("removed");
        remove_stale(&folder, &made, |_| true).expect("an empty folder");
    }

    #[test]
    fn a_file_written_without_compression_has_no_stale_siblings() {
        let folder = std::env::temp_dir().join(format!("rowlock-siblings-{}", std::process::id()));
        let file = folder.join("a.js");
        let names = || -> Vec<String> {
            let files = files_below(&folder).expect("listed");
            files.iter().filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect()
        };
        write(&file, b"go();", Compression::Quick).expect("written");
        assert_eq!(names(), ["a.js", "a.js.br", "a.js.gz"]);
        write(&file, b"stop();", Compression::None).expect("written");
        assert_eq!(names(), ["a.js"]);
        write(&folder.join("a.woff2"), b"a", Compression::Best).expect("written");
        assert_eq!(names(), ["a.js", "a.woff2"]);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
