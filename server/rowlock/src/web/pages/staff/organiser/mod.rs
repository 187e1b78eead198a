//! Pages of organisers: forms without a script, answered by a page or by the way on. They do what the API does, through
//! the same services.

mod films;
mod house_seats;
mod moving;
mod prices;
mod programme;
mod rooms;
mod show;
mod waiting_room;

use app::staff::pages::organiser::{Preview, Trouble};
use app::staff::pages::{Field, Refusal};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::money::{Currency, Money};
use domain::pricing::MAX_AMOUNT_MINOR;
use serde::{Deserialize, Serialize};

use super::super::booking::passing_or_fault;
use super::super::{PRIVATE_CACHE, PageError, html};
use super::{StaffPageError, hindrance};
use crate::AppState;
use backoffice::organiser::MAX_FILE_BYTES;
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem, page_locale};
use identity::accounts::Staff;
use platform::ids;

/// Largest form with a room in it, bytes: every sign of a file that is no letter or digit is three in a form, and
/// about a third of them are.
const MAX_ROOM_FORM_BYTES: usize = 2 * MAX_FILE_BYTES;
/// Largest of the other forms, bytes: prices of five hundred categories are below.
const MAX_FORM_BYTES: usize = 256 * 1024;

/// The pages.
pub(super) fn routes() -> Router<AppState> {
    let files = Router::new()
        .route("/staff/{theatre}/layouts", post(rooms::import))
        .layer(DefaultBodyLimit::max(MAX_ROOM_FORM_BYTES));
    Router::new()
        .route("/staff/{theatre}/shows", get(programme::week))
        .route("/staff/{theatre}/shows/plan", get(programme::planning).post(programme::plan))
        .route("/staff/{theatre}/shows/{show}", get(show::show_page))
        .route("/staff/{theatre}/shows/{show}/terms", post(show::terms))
        .route("/staff/{theatre}/shows/{show}/cancel", post(show::cancel))
        .route("/staff/{theatre}/shows/{show}/defective-seats", post(show::defective_seats))
        .route("/staff/{theatre}/shows/{show}/move", get(moving::show_page).post(moving::start))
        .route("/staff/{theatre}/shows/{show}/waiting-room", get(waiting_room::show_page))
        .route("/staff/{theatre}/shows/{show}/waiting-room/terms", get(waiting_room::terms).post(waiting_room::set))
        .route("/staff/{theatre}/shows/{show}/waiting-room/off", get(waiting_room::end).post(waiting_room::switch_off))
        .route("/staff/{theatre}/screens", get(rooms::screens).post(rooms::create))
        .route("/staff/{theatre}/screens/layout", post(rooms::publish))
        .route("/staff/{theatre}/screens/{screen}/house-seats", get(house_seats::show_page).post(house_seats::keep))
        .route("/staff/{theatre}/layouts/new", get(rooms::draw))
        .route("/staff/{theatre}/layouts/{layout}", get(rooms::room))
        .route("/staff/{theatre}/layouts/{layout}/edit", get(rooms::edit))
        .route("/staff/{theatre}/prices", get(prices::show_page).post(prices::set))
        .route("/staff/{theatre}/films", get(films::show_page).post(films::add))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .merge(files)
}

/// The query of these pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OrganiserQuery {
    from: Option<String>,
    done: bool,
    still: bool,
}

/// A page that is never cached.
fn private(page: impl app::Page) -> Response {
    html(page, PRIVATE_CACHE)
}

/// The way on after a form, as browsers take it: with GET.
fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The page again, with the problem and its status; internal errors have their own page.
fn with_status(status: StatusCode, mut page: Response) -> Response {
    *page.status_mut() = status;
    page
}

/// The problem's message in the reader's language, if the caller can solve it.
fn trouble(problem: Problem) -> Result<(StatusCode, Trouble), StaffPageError> {
    match problem.code() {
        Code::Internal | Code::DatabaseUnavailable | Code::NotFound => {
            Err(StaffPageError::ErrorPage(passing_or_fault(problem)))
        }
        _ => {
            let words = hindrance(&problem);
            Ok((problem.code().describe().0, Trouble { words, findings: problem.view().findings }))
        }
    }
}

/// A problem with the page's own message.
fn page_trouble(status: StatusCode, words: String) -> (StatusCode, Trouble) {
    (status, Trouble { words: words.into(), findings: Vec::new() })
}

/// Some fields were refused; each has its message beside it.
fn marked() -> (StatusCode, Trouble) {
    page_trouble(StatusCode::BAD_REQUEST, app::say!(in page_locale::language(), "field.refused"))
}

/// The intent of a form: its key, bound to its content.
fn intent(staff: &Staff, key: &str, form: &str, request: &impl Serialize) -> Result<Intent, Problem> {
    Ok(Intent::new(&staff.session.owner, IdempotencyKey::of_form(key)?, form, request))
}

/// A key for a form that is shown.
fn new_key() -> String {
    ids::new_id().to_string()
}

/// A field with a whole number in it.
fn whole(text: &str, what: &str) -> Result<u32, Problem> {
    text.trim().parse().map_err(|_| Problem::new(Code::Malformed, format!("{what}: {text:?} is no whole number.")))
}

/// A field of a form with dynamic names; empty if it is missing.
fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// A field with a price in it, or none, as it is shown again; and the price, minor units.
fn price_in(text: &str, currency: Currency) -> (Field, Option<i64>) {
    if text.trim().is_empty() {
        return (Field::default(), None);
    }
    let refused = |refusal| (Field::refused(text, refusal), None);
    match amount(text, currency) {
        None => refused(Refusal::NoAmount(currency)),
        Some(minor) if u64::try_from(minor).is_ok_and(|minor| minor <= MAX_AMOUNT_MINOR) => {
            (Field::kept(text), Some(minor))
        }
        Some(_) => {
            let [least, most] = [0, MAX_AMOUNT_MINOR.cast_signed()].map(|minor| Money::new(minor, currency));
            refused(Refusal::AmountBeyond(least, most))
        }
    }
}

/// An amount of money, minor units; `12.50` or `12,50`. `None` for what is none in that currency.
fn amount(text: &str, currency: Currency) -> Option<i64> {
    let written = text.trim().replace(',', ".");
    let (units, parts) = written.split_once('.').unwrap_or((written.as_str(), ""));
    let digits = currency.minor_digits() as usize;
    let is_written_so = parts.len() <= digits && parts.bytes().all(|byte| byte.is_ascii_digit());
    if !is_written_so || units.is_empty() || units == "-" {
        return None;
    }
    format!("{units}{parts:0<digits$}").parse().ok()
}

/// The currency of prices that are shown.
fn currency_of(code: &str) -> Result<Currency, PageError> {
    Currency::parse(code).ok_or(PageError::Fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_their_currency_writes_them() {
        let read = |text: &str, code| amount(text, Currency::parse(code).expect("a code"));
        assert_eq!(read("12.50", "EUR"), Some(1_250));
        assert_eq!(read(" 12,5 ", "EUR"), Some(1_250));
        assert_eq!(read("12", "EUR"), Some(1_200));
        assert_eq!(read("900", "JPY"), Some(900));
        assert_eq!(read("1.250", "KWD"), Some(1_250));
        assert_eq!(read("-1", "EUR"), Some(-100), "an amount, and no price");
        for wrong in ["", "-", "twelve", "12.345", "1.2.3", "9223372036854775807", "1e3", ".5", "12.-5"] {
            assert_eq!(read(wrong, "EUR"), None, "{wrong}");
        }
        assert_eq!(read("1.5", "JPY"), None);
    }
}
