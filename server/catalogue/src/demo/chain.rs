//! The files of the demo chain, read and checked. `demo/README.md` describes them.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, ensure};
use chrono::NaiveTime;
use chrono_tz::Tz;
use domain::layout::Layout;
use domain::money::Currency;
use domain::pricing::{Format, Tariff, Weekday};
use domain::seats::SeatIndex;
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

/// `chain.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainFile {
    pub cities: Vec<City>,
    pub films: Vec<Film>,
    pub theatres: Vec<ChainTheatre>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct City {
    pub id: String,
    pub name: String,
    pub country: String,
    /// IANA name.
    #[serde(deserialize_with = "time_zone")]
    pub time_zone: Tz,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Film {
    pub id: String,
    pub title: String,
    pub tagline: String,
    pub synopsis: String,
    pub running_minutes: i32,
    pub rating: String,
    pub genre: String,
    pub hue: i16,
    /// Its original language first.
    pub languages: Vec<String>,
    pub formats: Vec<Format>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainTheatre {
    pub id: String,
    pub city: String,
    pub name: String,
    pub address: String,
    pub currency: Currency,
    /// Languages of its audience.
    pub languages: Vec<String>,
    pub tariff: Tariff,
    pub screens: Vec<Screen>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Screen {
    pub id: String,
    pub name: String,
    /// Path of its layout in the folder.
    pub layout: String,
    /// Labels of seats that are never for sale.
    #[serde(default)]
    pub house_seats: Vec<String>,
    pub programme: Programme,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Programme {
    /// One film after the other, every day.
    Plays(Plays),
    /// Single evenings.
    Events(Vec<WeeklyEvent>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plays {
    /// When the first show of a day starts.
    #[serde(deserialize_with = "time_of_day")]
    pub first: NaiveTime,
    /// No show starts later.
    #[serde(deserialize_with = "time_of_day")]
    pub last: NaiveTime,
    /// Formats of the projector.
    pub formats: Vec<Format>,
    /// Film ids, in turn.
    pub films: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WeeklyEvent {
    pub weekday: Weekday,
    #[serde(deserialize_with = "time_of_day")]
    pub at: NaiveTime,
    pub film: String,
    pub format: Format,
}

/// `Europe/Lisbon`.
fn time_zone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tz, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

/// `20:00`.
fn time_of_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveTime, D::Error> {
    let text = String::deserialize(deserializer)?;
    NaiveTime::parse_from_str(&text, "%H:%M").map_err(|_| serde::de::Error::custom(format!("{text:?} is not HH:MM")))
}

/// A room that one or more screens have.
#[derive(Debug)]
pub(super) struct ChainRoom {
    /// Follows from its content.
    pub id: Uuid,
    /// As stored: see [`Layout`]'s serialisation.
    pub json: String,
    pub layout: Layout,
}

/// The whole folder, references resolved.
#[derive(Debug)]
pub(super) struct Chain {
    pub file: ChainFile,
    /// By the path that screens name.
    pub rooms: HashMap<String, ChainRoom>,
    /// Screen id to the room that an organiser gave it.
    given: HashMap<String, ChainRoom>,
    /// Screen id to the indices of its house seats.
    pub house_seats: HashMap<String, Vec<SeatIndex>>,
}

impl Chain {
    /// Reads and checks the folder. Blocks.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("chain.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file: ChainFile = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let mut chain = Self { file, rooms: HashMap::new(), given: HashMap::new(), house_seats: HashMap::new() };
        for theatre in &chain.file.theatres {
            ensure!(
                chain.file.cities.iter().any(|city| city.id == theatre.city),
                "theatre {} is in a city {:?} that is not there",
                theatre.id,
                theatre.city
            );
            for screen in &theatre.screens {
                if !chain.rooms.contains_key(&screen.layout) {
                    chain.rooms.insert(screen.layout.clone(), ChainRoom::read(folder, &screen.layout)?);
                }
                let layout = &chain.rooms[&screen.layout].layout;
                let find = |label: &String| {
                    layout.find(label).with_context(|| format!("screen {} has no seat {label:?}", screen.id))
                };
                let house_seats = screen.house_seats.iter().map(find).collect::<anyhow::Result<_>>()?;
                chain.house_seats.insert(screen.id.clone(), house_seats);
            }
        }
        Ok(chain)
    }

    /// Applies the prices that organisers saved. A category that an organiser left without a price has the file's: without
    /// one no show could be planned in its room.
    pub fn price_by(&mut self, mut saved: HashMap<String, Tariff>) {
        for theatre in &mut self.file.theatres {
            let Some(theirs) = saved.remove(&theatre.id) else { continue };
            let of_file = std::mem::replace(&mut theatre.tariff, theirs);
            for (category, minor) in of_file.base {
                theatre.tariff.base.entry(category).or_insert(minor);
            }
        }
    }

    /// Has screens show in the rooms that organisers gave them since: by screen, a room's id and how it is stored. The
    /// house keeps the seats of the same names there.
    pub fn give_rooms(&mut self, mut given: HashMap<String, (Uuid, String)>) -> anyhow::Result<()> {
        for screen in self.file.theatres.iter().flat_map(|theatre| &theatre.screens) {
            let Some((id, json)) = given.remove(&screen.id) else { continue };
            let layout: Layout =
                serde_json::from_str(&json).with_context(|| format!("room {id} of screen {}", screen.id))?;
            let house_seats = screen.house_seats.iter().filter_map(|label| layout.find(label)).collect();
            self.house_seats.insert(screen.id.clone(), house_seats);
            self.given.insert(screen.id.clone(), ChainRoom { id, json, layout });
        }
        Ok(())
    }

    /// The room that new shows on a screen are in.
    pub fn room_of(&self, screen: &Screen) -> &ChainRoom {
        self.given.get(&screen.id).unwrap_or_else(|| &self.rooms[&screen.layout])
    }

    /// Categories without a price, in a room that an organiser gave this screen.
    pub fn unpriced(&self, theatre: &ChainTheatre, screen: &Screen) -> Vec<String> {
        let categories = self.given.get(&screen.id).into_iter().flat_map(|room| room.layout.categories());
        let unpriced = categories.filter(|category| !theatre.tariff.base.contains_key(&category.name));
        unpriced.map(|category| category.name.clone()).collect()
    }

    /// A film that a programme names.
    pub fn film(&self, id: &str) -> anyhow::Result<&Film> {
        self.file.films.iter().find(|film| film.id == id).with_context(|| format!("there is no film {id:?}"))
    }

    /// The zone of a theatre's city.
    pub fn time_zone(&self, theatre: &ChainTheatre) -> anyhow::Result<Tz> {
        let city = self.file.cities.iter().find(|city| city.id == theatre.city);
        Ok(city.with_context(|| format!("there is no city {:?}", theatre.city))?.time_zone)
    }
}

impl ChainRoom {
    fn read(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let layout = Layout::from_json(&text).with_context(|| path.display().to_string())?;
        let json = serde_json::to_string(&layout).context("a layout is always JSON")?;
        let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("rowlock:layout:{json}").as_bytes());
        Ok(Self { id, json, layout })
    }
}
