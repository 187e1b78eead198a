//! Shows: planning by a weekly pattern, terms of sale, moves and cancellations.

mod defective_seats;
mod moving;
mod moving_drafts;
mod pattern;
mod plan;
mod terms;
mod week;

pub use defective_seats::withdraw as withdraw_seats;
pub use moving::{begin as move_show, preview as preview_move};
pub use moving_drafts::own_prices;
pub use plan::plan;
pub use terms::{call_off, change as change_terms};
pub use week::{WeekOfShows, show, week};

use chrono::{NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use domain::api::organiser::{Sales, TermsOfSale};
use domain::seats::MAX_SEATS_PER_PERSON;
use domain::time::{SECOND_MS, Timestamp};

use http::{ApiResult, Code, Problem};
use platform::clock::from_utc;

/// Minimum duration of a hold, seconds: a payment takes that long.
const LEAST_HOLD_S: u32 = 30;
/// Maximum duration of a hold, seconds.
const LONGEST_HOLD_S: u32 = 3_600;
/// Maximum of the limit of seats per payment card.
const MAX_PER_INSTRUMENT: u32 = 100;
/// Format of a local time in requests.
const LOCAL_MINUTE: &str = "%Y-%m-%dT%H:%M";

/// Terms of sale, validated, in the units of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SaleTerms {
    pub sales: Sales,
    pub sales_from: Option<Timestamp>,
    pub hold_ms: i64,
    pub flash_sale: bool,
    pub per_person: i16,
    pub email_code: bool,
    pub per_instrument: Option<i16>,
}

/// Validates terms of sale; the only validator.
fn checked(terms: &TermsOfSale, zone: Tz) -> ApiResult<SaleTerms> {
    let refuse = |detail: String| Err(Problem::new(Code::Malformed, detail));
    if !(LEAST_HOLD_S..=LONGEST_HOLD_S).contains(&terms.hold_seconds) {
        return refuse(format!("Seats are held for {LEAST_HOLD_S} to {LONGEST_HOLD_S} seconds."));
    }
    let per_person = i16::try_from(terms.per_person).unwrap_or(i16::MAX);
    if !(1..=MAX_SEATS_PER_PERSON as i16).contains(&per_person) {
        return refuse(format!("One person may have 1 to {MAX_SEATS_PER_PERSON} seats."));
    }
    if terms.per_instrument.is_some_and(|most| !(1..=MAX_PER_INSTRUMENT).contains(&most)) {
        return refuse(format!("One card may pay for 1 to {MAX_PER_INSTRUMENT} seats, or for any number."));
    }
    let written = terms.sales_from.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let sales_from = written.map(|text| read_instant(text, zone)).transpose()?;
    Ok(SaleTerms {
        sales: terms.sales,
        sales_from,
        hold_ms: i64::from(terms.hold_seconds) * SECOND_MS,
        flash_sale: terms.flash_sale,
        per_person,
        email_code: terms.email_code,
        per_instrument: terms.per_instrument.and_then(|most| i16::try_from(most).ok()),
    })
}

/// Parses a local time such as `2026-12-01T10:00` in a time zone; the earlier instant when clocks go back over it.
///
/// # Errors
/// 400 for invalid text, and for a time that the clocks skip.
pub fn instant(text: &str, zone: &str) -> ApiResult<Timestamp> {
    read_instant(text.trim(), zone_of(zone)?)
}

fn read_instant(text: &str, zone: Tz) -> ApiResult<Timestamp> {
    // Checks the date first: chrono parses years that Postgres rejects.
    let is_day = text.split_once('T').is_some_and(|(date, _)| catalogue::day(date).is_some());
    let local = NaiveDateTime::parse_from_str(text, LOCAL_MINUTE).ok().filter(|_| is_day);
    let no_time = || Problem::new(Code::Malformed, format!("{text:?} is no time like 2026-12-01T10:00."));
    let local = local.ok_or_else(no_time)?;
    let detail = || format!("{text} does not exist there, because the clocks change. Choose another time.");
    let found = zone.from_local_datetime(&local).earliest();
    Ok(from_utc(found.ok_or_else(|| Problem::new(Code::NoSuchTime, detail()))?.to_utc()))
}

fn zone_of(name: &str) -> ApiResult<Tz> {
    name.parse().map_err(|_| Problem::internal(&format!("the time zone {name:?} of a theatre is none")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_outside_limits_and_skipped_times_are_refused() {
        let zone = chrono_tz::Europe::Lisbon;
        let code = |terms: TermsOfSale| checked(&terms, zone).err().map(|problem| problem.code());
        let usual = TermsOfSale::default;
        assert_eq!(code(usual()), None);
        assert_eq!(code(TermsOfSale { hold_seconds: 29, ..usual() }), Some(Code::Malformed));
        assert_eq!(code(TermsOfSale { hold_seconds: u32::MAX, ..usual() }), Some(Code::Malformed));
        assert_eq!(code(TermsOfSale { per_person: 0, ..usual() }), Some(Code::Malformed));
        assert_eq!(code(TermsOfSale { per_person: 70_000, ..usual() }), Some(Code::Malformed));
        for (most, expected) in [(0, Some(Code::Malformed)), (1, None), (100, None), (101, Some(Code::Malformed))] {
            assert_eq!(code(TermsOfSale { per_instrument: Some(most), ..usual() }), expected, "{most}");
        }
        let from = |text: &str| TermsOfSale { sales_from: Some(text.to_owned()), ..usual() };
        assert_eq!(code(from("tomorrow")), Some(Code::Malformed));
        assert_eq!(code(from("-9999-01-1T10:00")), Some(Code::Malformed));
        assert_eq!(code(from("2026-03-29T01:30")), Some(Code::NoSuchTime));
        assert_eq!(code(from(" ")), None);
        let summer = checked(&from("2026-07-01T10:00"), zone).expect("a time").sales_from.expect("it");
        assert_eq!(platform::clock::rfc3339(summer), "2026-07-01T09:00:00.000Z");
    }
}
