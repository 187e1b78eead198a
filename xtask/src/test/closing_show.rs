//! Generates a theatre with a show that begins within minutes, for tests of closed sales.
//!
//! The demo has such a show only by chance.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::json;

use crate::paths::Paths;

/// Minutes until the show begins: within the five in which sales are closed, and enough to load it.
const BEGINS_IN_MINUTES: u64 = 4;
const MINUTES_A_DAY: u64 = 24 * 60;
const SCREEN: &str = "last-minute-1";

/// The generated theatre, as a folder like `demo/`.
pub struct ClosingShow {
    /// The folder.
    pub folder: PathBuf,
    /// The text from which the show's id is derived.
    pub identity: String,
}

/// Writes the theatre below `parent`.
pub fn write(paths: &Paths, parent: &Path) -> Result<ClosingShow> {
    let minute = minute_now()? + BEGINS_IN_MINUTES;
    let at = format!("{:02}:{:02}", minute % MINUTES_A_DAY / 60, minute % 60);
    let weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let events = weekdays.map(|weekday| json!({ "weekday": weekday, "at": at, "film": "last-call", "format": "2D" }));
    let base = json!({ "recliner": 1_900, "couple": 2_100, "gold": 1_500 });
    let chain = json!({
        "cities": [{ "id": "greenwich", "name": "Greenwich", "country": "GB", "time_zone": "Etc/UTC" }],
        "films": [{
            "id": "last-call", "title": "Last Call", "tagline": "The lights go down.", "synopsis": "It begins.",
            "running_minutes": 90, "rating": "All", "genre": "Short", "hue": 20, "languages": ["English"], "formats": ["2D"],
        }],
        "theatres": [{
            "id": "last-minute", "city": "greenwich", "name": "Last Minute", "address": "Meridian 0", "currency": "EUR",
            "languages": ["English"],
            "tariff": {
                "base": base, "weekend_percent": 100, "matinee_percent": 100, "prime_percent": 100, "surcharge": {},
            },
            "screens": [{
                "id": SCREEN, "name": "Screen 1", "layout": "layouts/boutique-60.json", "programme": { "events": events },
            }],
        }],
    });
    let folder = parent.join("closing");
    std::fs::create_dir_all(folder.join("layouts"))?;
    let layout = "layouts/boutique-60.json";
    std::fs::copy(paths.root.join("demo").join(layout), folder.join(layout)).context("a room of the demo")?;
    std::fs::write(folder.join("chain.json"), serde_json::to_vec(&chain)?)?;
    Ok(ClosingShow { folder, identity: format!("rowlock:show:{SCREEN}:{}", minute * 60_000) })
}

/// Returns the minutes since 1970.
#[expect(clippy::disallowed_methods, reason = "the show's start follows the real clock")]
fn minute_now() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?;
    Ok(now.as_secs() / 60)
}
