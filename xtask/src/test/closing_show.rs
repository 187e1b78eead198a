//! A show whose doors are closing: one that begins in a moment, in a cinema of its own.
//!
//! The demo has none unless one happens to look at the right minute.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::json;

use crate::places::Places;

/// So soon it begins, minutes: within the five in which nothing is sold, and late enough to be loaded.
const BEGINS_IN_MINUTES: u64 = 4;
const MINUTES_A_DAY: u64 = 24 * 60;
const SCREEN: &str = "last-minute-1";

/// The cinema as a folder like `demo/`.
pub struct Closing {
    /// The folder.
    pub folder: PathBuf,
    /// What the show's id follows from.
    pub identity: String,
}

/// Writes it under `under`.
pub fn plan(places: &Places, under: &Path) -> Result<Closing> {
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
    let folder = under.join("closing");
    std::fs::create_dir_all(folder.join("layouts"))?;
    let layout = "layouts/boutique-60.json";
    std::fs::copy(places.root.join("demo").join(layout), folder.join(layout)).context("a room of the demo")?;
    std::fs::write(folder.join("chain.json"), serde_json::to_vec(&chain)?)?;
    Ok(Closing { folder, identity: format!("rowlock:show:{SCREEN}:{}", minute * 60_000) })
}

/// Minutes since 1970.
#[expect(clippy::disallowed_methods, reason = "a show that begins in a moment begins by the real clock")]
fn minute_now() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?;
    Ok(now.as_secs() / 60)
}
