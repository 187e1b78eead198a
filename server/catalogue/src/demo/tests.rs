//! The folder `demo/` as it is, and its timetable around the edges of the calendar.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use domain::VariantName;
use domain::api::SeatKind;
use domain::pricing::{Tariff, TaxAndFee, TaxStrategy};
use domain::time::Timestamp;
use strum::VariantArray;

use super::chain::Chain;
use super::timetable::{self, PlannedShow};

/// A Saturday morning.
const NOW: &str = "2026-11-21T06:00:00Z";

fn demo() -> Chain {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
    Chain::read(&folder).expect("the demo folder is in order")
}

fn instant(text: &str) -> Timestamp {
    Timestamp(DateTime::parse_from_rfc3339(text).expect("an instant").timestamp_millis())
}

fn week(chain: &Chain, now: &str) -> Vec<PlannedShow> {
    timetable::shows(chain, instant(now), 7).expect("a timetable")
}

#[test]
fn the_chain_has_three_zones_five_theatres_eleven_screens_and_the_documented_rooms() {
    let chain = demo();
    let zones: HashSet<_> = chain.file.cities.iter().map(|city| city.time_zone).collect();
    assert_eq!((zones.len(), chain.file.theatres.len()), (3, 5));
    assert_eq!(chain.file.theatres.iter().flat_map(|theatre| &theatre.screens).count(), 11);
    assert!(chain.file.films.len() >= 12);
    let seats = |room: &str| chain.rooms[room].layout.seat_count();
    assert_eq!(seats("layouts/boutique-60.json"), 60);
    assert_eq!(seats("layouts/imax-420.json"), 420);
    assert_eq!(seats("layouts/arena-50000.json"), 50_000);
    let club = chain.rooms["layouts/club-80.json"].layout.areas();
    assert_eq!(club.iter().map(|area| (&*area.name, area.capacity)).collect::<Vec<_>>(), [("Standing floor", 300)]);
    let has = |room: &str, kind| chain.rooms[room].layout.categories().iter().any(|category| category.kind == kind);
    assert!(has("layouts/boutique-60.json", SeatKind::Couple) && has("layouts/boutique-60.json", SeatKind::Recliner));
    assert!(has("layouts/imax-420.json", SeatKind::Wheelchair) && has("layouts/imax-420.json", SeatKind::Companion));
}

#[test]
fn the_readme_names_every_seat_kind() {
    let readme = include_str!("../../../../demo/README.md");
    let (_, kinds) = readme.split_once("**Kinds**").expect("the list of kinds");
    let kinds = kinds.split("\n\n").next().unwrap_or_default();
    for name in SeatKind::VARIANTS.iter().map(SeatKind::as_str) {
        assert!(kinds.contains(&format!("`{name}`")), "demo/README.md lacks {name}");
    }
}

#[test]
fn every_file_of_a_room_is_used_and_named_by_its_seats() {
    let chain = demo();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/layouts")).expect("a folder")
    {
        let name = entry.expect("a file").file_name().into_string().expect("a plain name");
        let room = &chain.rooms[&format!("layouts/{name}")];
        let count = room.layout.seat_count().to_string();
        assert!(name.split(['-', '.']).any(|part| part == count), "{name} has {count} seats");
    }
}

#[test]
fn every_screen_plays_every_day_and_the_arena_twice_a_week() {
    let chain = demo();
    let shows = week(&chain, NOW);
    for screen in chain.file.theatres.iter().flat_map(|theatre| &theatre.screens) {
        let days: HashSet<_> =
            shows.iter().filter(|show| show.screen == screen.id).map(|show| show.local_date).collect();
        let wanted = if screen.id == "meridian-berlin-1" { 2 } else { 7 };
        assert_eq!(days.len(), wanted, "{}", screen.id);
    }
    assert!((300..600).contains(&shows.len()), "{}", shows.len());
    let planned: HashSet<_> = shows.iter().map(|show| show.id).collect();
    assert_eq!(planned.len(), shows.len(), "ids are unique");
    let films: HashSet<_> = shows.iter().map(|show| &show.film).collect();
    assert_eq!(films.len(), chain.file.films.len(), "every film is shown somewhere");
}

#[test]
fn a_film_ends_before_the_next_one_starts_and_none_starts_at_night() {
    let chain = demo();
    let mut shows = week(&chain, NOW);
    shows.sort_by(|a, b| (&a.screen, a.starts_at).cmp(&(&b.screen, b.starts_at)));
    for pair in shows.windows(2).filter(|pair| pair[0].screen == pair[1].screen) {
        let film = chain.film(&pair[0].film).expect("a film of the chain");
        let pause = pair[1].starts_at - pair[0].starts_at - TimeDelta::minutes(film.running_minutes.into());
        assert!(pause >= TimeDelta::minutes(25), "{} after {}", pair[1].starts_at, pair[0].starts_at);
    }
    let zones: HashMap<_, _> = chain
        .file
        .theatres
        .iter()
        .flat_map(|theatre| {
            theatre.screens.iter().map(|screen| (&screen.id, chain.time_zone(theatre).expect("a zone")))
        })
        .collect();
    for show in &shows {
        let local = show.starts_at.with_timezone(&zones[&show.screen]).naive_local();
        assert_eq!(local.date(), show.local_date);
        assert!(local.time() >= at(11, 0) && local.time() <= at(22, 30), "{local}");
    }
}

#[test]
fn a_run_a_day_later_plans_the_same_days_the_same_way() {
    let chain = demo();
    let today: HashMap<_, _> = week(&chain, NOW).into_iter().map(|show| (show.id, show)).collect();
    let tomorrow = week(&chain, "2026-11-22T06:00:00Z");
    let both = tomorrow.iter().filter(|show| today.get(&show.id) == Some(show)).count();
    let last = NaiveDate::from_ymd_opt(2026, 11, 27).expect("a date");
    assert_eq!(both, tomorrow.iter().filter(|show| show.local_date <= last).count());
    assert!(both < tomorrow.len(), "and adds a day");
}

#[test]
fn shows_have_the_prices_and_tax_and_fee_an_organiser_saved_and_the_files_prices_for_the_rest() {
    let mut chain = demo();
    let theatre = &chain.file.theatres[0];
    let (id, of_file) = (theatre.id.clone(), theatre.tariff.clone());
    let (left_out, _) = of_file.base.last_key_value().expect("a category");
    let named = of_file.base.keys().filter(|name| *name != left_out);
    let saved = Tariff {
        base: named.map(|name| (name.clone(), 7_770)).collect(),
        weekend_percent: 100,
        matinee_percent: 100,
        prime_percent: 100,
        surcharge: BTreeMap::new(),
        tax_and_fee: TaxAndFee { strategy: TaxStrategy::Included, tax_basis_points: 1_300, fee_minor: 0 },
    };
    let contained = saved.tax_and_fee.contained();
    chain.price_by(HashMap::from([(id.clone(), saved)]));
    for (name, minor) in &of_file.base {
        let wanted = if name == left_out { *minor } else { 7_770 };
        assert_eq!(chain.file.theatres[0].tariff.base[name], wanted, "{name}");
    }
    let priced = week(&chain, NOW).into_iter().filter(|show| show.prices.contains(":7770"));
    let priced: HashSet<_> = priced.map(|show| (show.screen, show.tax_and_fee == contained)).collect();
    let screens = chain.file.theatres[0].screens.iter().map(|screen| (screen.id.clone(), true));
    assert_eq!(priced, screens.collect::<HashSet<_>>(), "all of {id}, and no others");
}

#[test]
fn a_started_show_is_not_sold_any_more() {
    let chain = demo();
    let evening = "2026-11-21T18:00:00Z";
    let now: DateTime<Utc> = evening.parse().expect("an instant");
    let shows = week(&chain, evening);
    assert!(shows.iter().all(|show| show.starts_at > now));
    // 23:30 in Mumbai: nothing is left of today there, and the week has six days.
    let mumbai = shows.iter().filter(|show| show.screen == "marigold-mumbai-1");
    assert_eq!(mumbai.map(|show| show.local_date).collect::<HashSet<_>>().len(), 6);
}

#[test]
fn a_skipped_local_time_does_not_exist_and_a_doubled_one_is_its_first() {
    let lisbon = chrono_tz::Europe::Lisbon;
    let date = |month, day| NaiveDate::from_ymd_opt(2026, month, day).expect("a date");
    assert_eq!(timetable::instant(lisbon, date(3, 29), at(1, 30)), None);
    let doubled = timetable::instant(lisbon, date(10, 25), at(1, 30)).expect("an instant");
    assert_eq!(doubled.to_rfc3339(), "2026-10-25T00:30:00+00:00");
}

fn at(hour: u32, minute: u32) -> NaiveTime {
    NaiveTime::from_hms_opt(hour, minute, 0).expect("a time of day")
}
