//! Theatres and their cities: created by managers of all theatres, changed by their own managers.

use axum::http::StatusCode;
use chrono_tz::Tz;
use domain::api::theatres::{ManagedTheatre, NewCity, TheatreChange, TheatreRequest};
use domain::money::Currency;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};

use super::{MAX_TEXT_CHARS, name_of, screens, slug_of, text_of};
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::{self, Staff, StaffAction};
use identity::audit::{self, AuditEntry};
use platform::database::BindAll;

/// Maximum number of theatres: the list of them is one page.
const MAX_THEATRES: i64 = 500;
/// Audit action of a creation.
const CREATED: &str = "theatre_created";

/// Returns one theatre.
///
/// # Errors
/// 404 when there is none.
pub async fn one(state: &BackofficeState, theatre: &str) -> ApiResult<ManagedTheatre> {
    find(&mut *state.pg.acquire().await?, theatre).await
}

/// Creates a theatre. The caller becomes its manager.
///
/// # Errors
/// 403 for callers who do not manage all theatres, 400 for invalid details, 404 for an unknown city.
pub async fn create(
    state: &BackofficeState,
    staff: &Staff,
    intent: &Intent,
    request: &TheatreRequest,
) -> ApiResult<Answer> {
    accounts::require_manager_of_all(state, staff).await?;
    let new = ValidTheatre::of(request)?;
    let action = StaffAction { staff, theatre: &new.id, intent, reason: &request.reason };
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let view = new.write(&mut begun.tx).await?;
    accounts::make_manager(&mut begun.tx, staff, &view.id, begun.now).await?;
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    begun.finish(CREATED, format!("theatre {} in {}", view.id, view.city), answer).await
}

/// Creates a theatre from the server's command line: the first theatre has no manager who could create it.
///
/// # Errors
/// As [`create`], without the check of the role.
pub async fn create_from_command_line(
    pg: &PgPool,
    request: &TheatreRequest,
    now: Timestamp,
) -> ApiResult<ManagedTheatre> {
    let new = ValidTheatre::of(request)?;
    let reason = accounts::reason_of(&request.reason)?;
    let mut tx = pg.begin().await?;
    let view = new.write(&mut tx).await?;
    let subject = format!("theatre {} in {}", view.id, view.city);
    let entry = AuditEntry { actor: None, theatre: Some(&view.id), act: CREATED, subject, reason };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    Ok(view)
}

/// A validated request, with the slug of the new theatre.
struct ValidTheatre<'a> {
    id: String,
    name: &'a str,
    address: &'a str,
    currency: Currency,
    city: Option<&'a str>,
    new_city: Option<NewCity>,
}

impl<'a> ValidTheatre<'a> {
    fn of(request: &'a TheatreRequest) -> ApiResult<Self> {
        let name = name_of(&request.name, "the theatre's name")?;
        Ok(Self {
            id: slug_of(name),
            name,
            address: address_of(&request.address)?,
            currency: currency_of(&request.currency)?,
            city: request.city.as_deref(),
            new_city: request.new_city.as_ref().map(checked_city).transpose()?,
        })
    }

    async fn write(&self, tx: &mut PgConnection) -> ApiResult<ManagedTheatre> {
        if lock_all(tx).await? >= MAX_THEATRES {
            return Err(Problem::new(Code::Malformed, format!("There are at most {MAX_THEATRES} theatres.")));
        }
        let city = match (self.city, &self.new_city) {
            (Some(city), None) if has_city(tx, city).await? => city.to_owned(),
            (Some(_), None) => return Err(Problem::not_found("city")),
            (None, Some(city)) => {
                let id = slug_of(&city.name);
                insert_city(tx, &id, city).await?;
                id
            }
            _ => return Err(Problem::new(Code::Malformed, "Name a city that is there, or write a new one down.")),
        };
        sqlx::query("INSERT INTO theatres (id, city_id, name, address, currency) VALUES ($1, $2, $3, $4, $5)")
            .bind_all((&self.id, city, self.name, self.address, self.currency.code()))
            .execute(&mut *tx)
            .await?;
        find(tx, &self.id).await
    }
}

/// Changes the details of a theatre.
///
/// # Errors
/// 400 for invalid details, 409 after a concurrent change, or when the currency is in use.
pub async fn change(state: &BackofficeState, action: &StaffAction<'_>, request: &TheatreChange) -> ApiResult<Answer> {
    let name = name_of(&request.name, "the theatre's name")?;
    let address = address_of(&request.address)?;
    let currency = currency_of(&request.currency)?;
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    screens::lock_theatre(&mut begun.tx, action.theatre).await?;
    let before = find(&mut begun.tx, action.theatre).await?;
    if before.currency != currency.code() && has_money(&mut begun.tx, action.theatre).await? {
        let detail = "Prices, shows or tills of this theatre are in its currency: it cannot take another any more.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let (version, values) = (request.version.cast_signed(), (name, address, currency.code()));
    if !update(&mut begun.tx, action.theatre, version, values).await? {
        let detail = "Someone else has changed this theatre in the meantime. Look at it again, then change it.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let view = find(&mut begun.tx, action.theatre).await?;
    let answer = Answer::json(StatusCode::OK, &view)?;
    begun.finish("theatre_changed", format!("theatre {}, version {}", action.theatre, view.version), answer).await
}

fn address_of(text: &str) -> ApiResult<&str> {
    match text_of(text, MAX_TEXT_CHARS, "The address")? {
        "" => Err(Problem::new(Code::Malformed, "Write down the address.")),
        address => Ok(address),
    }
}

fn currency_of(code: &str) -> ApiResult<Currency> {
    Currency::parse(code.trim())
        .ok_or_else(|| Problem::new(Code::Malformed, format!("{code:?} is no currency like EUR.")))
}

/// Validates a city; the only validator.
fn checked_city(city: &NewCity) -> ApiResult<NewCity> {
    let name = name_of(&city.name, "the city's name")?;
    let country = city.country.trim().to_ascii_uppercase();
    if country.len() != 2 || !country.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return Err(Problem::new(Code::Malformed, format!("{:?} is no country like PT.", city.country)));
    }
    let zone: Result<Tz, _> = city.time_zone.trim().parse();
    let zone = zone.map_err(|_| {
        Problem::new(Code::Malformed, format!("{:?} is no time zone like Europe/Lisbon.", city.time_zone))
    })?;
    Ok(NewCity { name: name.to_owned(), country, time_zone: zone.name().to_owned() })
}

#[derive(platform::FromRow)]
struct TheatreRow {
    id: String,
    name: String,
    address: String,
    city: String,
    city_name: String,
    time_zone: String,
    currency: String,
    version: i32,
}

async fn find(connection: &mut PgConnection, theatre: &str) -> ApiResult<ManagedTheatre> {
    let row: Option<TheatreRow> = sqlx::query_as(
        "SELECT theatre.id, theatre.name, theatre.address, city.id AS city, city.name AS city_name, city.time_zone,
                theatre.currency::text AS currency, theatre.version
         FROM theatres theatre JOIN cities city ON city.id = theatre.city_id WHERE theatre.id = $1",
    )
    .bind(theatre)
    .fetch_optional(connection)
    .await?;
    let row = row.ok_or_else(|| Problem::not_found("theatre"))?;
    Ok(ManagedTheatre {
        id: row.id,
        name: row.name,
        address: row.address,
        city: row.city,
        city_name: row.city_name,
        time_zone: row.time_zone,
        currency: row.currency,
        version: row.version.unsigned_abs(),
    })
}

/// Locks the table and counts the theatres: no theatre is added while a caller's right to manage all of them is
/// checked.
async fn lock_all(tx: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query("LOCK TABLE theatres IN SHARE ROW EXCLUSIVE MODE").execute(&mut *tx).await?;
    sqlx::query_scalar("SELECT count(*) FROM theatres").fetch_one(tx).await
}

async fn has_city(tx: &mut PgConnection, city: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM cities WHERE id = $1)").bind(city).fetch_one(tx).await
}

async fn insert_city(tx: &mut PgConnection, id: &str, city: &NewCity) -> sqlx::Result<()> {
    let sql = "INSERT INTO cities (id, name, country, time_zone) VALUES ($1, $2, $3, $4)";
    sqlx::query(sql).bind_all((id, &city.name, &city.country, &city.time_zone)).execute(tx).await.map(drop)
}

/// Returns `true` when shows, tariffs or tills use the theatre's currency.
async fn has_money(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM shows JOIN screens ON screens.id = shows.screen_id WHERE screens.theatre_id = $1)
             OR EXISTS (SELECT 1 FROM theatre_tariffs WHERE theatre_id = $1)
             OR EXISTS (SELECT 1 FROM tills WHERE theatre_id = $1)",
    )
    .bind(theatre)
    .fetch_one(tx)
    .await
}

/// Changes the details of a theatre; `false` when its version differs.
async fn update(
    tx: &mut PgConnection,
    theatre: &str,
    version: i32,
    (name, address, currency): (&str, &str, &str),
) -> sqlx::Result<bool> {
    let sql = "UPDATE theatres SET name = $3, address = $4, currency = $5, version = version + 1
               WHERE id = $1 AND version = $2";
    let done = sqlx::query(sql).bind_all((theatre, version, name, address, currency)).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_city_needs_a_name_a_country_and_a_time_zone() {
        let city = |name: &str, country: &str, zone: &str| {
            let (name, country, time_zone) = (name.to_owned(), country.to_owned(), zone.to_owned());
            checked_city(&NewCity { name, country, time_zone }).map_err(|problem| problem.code())
        };
        let porto = city(" Porto ", "pt", "Europe/Lisbon").expect("a city");
        assert_eq!((porto.name.as_str(), porto.country.as_str()), ("Porto", "PT"));
        for (name, country, zone) in [
            ("", "PT", "Europe/Lisbon"),
            ("Porto", "P", "Europe/Lisbon"),
            ("Porto", "PT", "Europe/Porto"),
            ("Porto", "ÄÄ", "UTC"),
        ] {
            assert_eq!(city(name, country, zone), Err(Code::Malformed), "{name} {country} {zone}");
        }
        assert!(currency_of("EUR").is_ok() && currency_of("euro").is_err());
    }
}
