//! The prices of a theatre.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use domain::VariantName;
use domain::api::organiser::{TariffRequest, TariffView};
use domain::pricing::{MAX_AMOUNT_MINOR, MAX_PERCENT, MAX_TAX_BASIS_POINTS, Tariff, TaxAndFee};
use domain::time::Timestamp;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::BackofficeState;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use platform::clock::to_utc;
use platform::database::BindAll;

/// Maximum number of categories in a tariff.
const MAX_CATEGORIES: usize = 500;

/// Returns the tariff of a theatre; empty before the first is set.
pub async fn current(state: &BackofficeState, theatre: &str) -> ApiResult<TariffView> {
    let found = find_tariff(&mut *state.pg.acquire().await?, theatre).await?;
    Ok(found.map_or_else(empty_tariff, |(tariff, version)| view_of(&tariff, version)))
}

/// The currency and categories of a theatre's prices.
#[derive(Debug)]
pub struct PriceInput {
    /// ISO 4217 code.
    pub currency: String,
    /// Category names, which identify prices, with their labels.
    pub categories: BTreeMap<String, String>,
}

impl PriceInput {
    /// Returns the label of a category that customers see; with its name if another category has the same label.
    #[must_use]
    pub fn label_of(&self, name: &str) -> String {
        let Some(label) = self.categories.get(name) else { return name.to_owned() };
        let is_shared = self.categories.values().filter(|other| *other == label).count() > 1;
        if is_shared { format!("{label} ({name})") } else { label.clone() }
    }
}

/// Returns the currency of a theatre, and the categories of its layouts.
///
/// # Errors
/// 404 when there is no such theatre.
pub async fn load_price_input(state: &BackofficeState, theatre: &str) -> ApiResult<PriceInput> {
    let mut connection = state.pg.acquire().await?;
    let currency = currency_of(&mut connection, theatre).await?;
    let currency = currency.ok_or_else(|| Problem::not_found("theatre"))?;
    let categories = categories_of(&mut connection, theatre, MAX_CATEGORIES as i64).await?;
    Ok(PriceInput { currency, categories: categories.into_iter().collect() })
}

fn empty_tariff() -> TariffView {
    TariffView {
        base: BTreeMap::new(),
        weekend_percent: 100,
        matinee_percent: 100,
        prime_percent: 100,
        surcharge: BTreeMap::new(),
        tax_and_fee: Some(TaxAndFee::default()),
        version: 0,
    }
}

fn view_of(tariff: &Tariff, version: i32) -> TariffView {
    TariffView {
        base: tariff.base.iter().map(|(name, minor)| (name.clone(), minor.cast_signed())).collect(),
        weekend_percent: tariff.weekend_percent.into(),
        matinee_percent: tariff.matinee_percent.into(),
        prime_percent: tariff.prime_percent.into(),
        surcharge: tariff.surcharge.iter().map(|(format, minor)| (*format, minor.cast_signed())).collect(),
        tax_and_fee: Some(tariff.tax_and_fee),
        version: version.unsigned_abs(),
    }
}

/// Sets the tariff for future plans.
///
/// # Errors
/// 400 with the name of an invalid price; 409 after a concurrent change.
pub async fn set(state: &BackofficeState, action: &StaffAction<'_>, request: &TariffRequest) -> ApiResult<Answer> {
    let mut tariff = checked(&request.tariff)?;
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    if request.tariff.tax_and_fee.is_none()
        && let Some((present, _)) = find_tariff(&mut begun.tx, action.theatre).await?
    {
        // If it is another version than the request names, the write below fails.
        tariff.tax_and_fee = present.tax_and_fee;
    }
    let (before, now) = (request.tariff.version.cast_signed(), begun.now);
    if !write(&mut begun.tx, action.theatre, &tariff, before, now).await? {
        let detail = "Someone else has changed the prices in the meantime. Look at them again, then change them.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let view = view_of(&tariff, before + 1);
    let answer = Answer::json(StatusCode::OK, &view)?;
    begun.finish("tariff_set", format!("tariff, version {}", before + 1), answer).await
}

/// Validates prices; the only validator.
fn checked(view: &TariffView) -> ApiResult<Tariff> {
    if view.base.len() > MAX_CATEGORIES {
        return Err(Problem::new(Code::PriceInvalid, format!("A tariff has at most {MAX_CATEGORIES} categories.")));
    }
    let percent = |value: i64, what: &str| {
        u16::try_from(value).ok().filter(|percent| *percent <= MAX_PERCENT).ok_or_else(|| {
            Problem::new(Code::PriceInvalid, format!("The percentage {what} is {value}; it is 0 to {MAX_PERCENT}."))
        })
    };
    let tax_and_fee = view.tax_and_fee.unwrap_or_default();
    let TaxAndFee { tax_basis_points: rate, fee_minor: fee, .. } = tax_and_fee;
    if rate > MAX_TAX_BASIS_POINTS {
        let detail = format!("The tax rate is {rate} hundredths of a percent; it is 0 to {MAX_TAX_BASIS_POINTS}.");
        return Err(Problem::new(Code::PriceInvalid, detail));
    }
    if fee > MAX_AMOUNT_MINOR {
        let detail = format!("The fee is {fee}; it is 0 to {MAX_AMOUNT_MINOR} in the smallest coin.");
        return Err(Problem::new(Code::PriceInvalid, detail));
    }
    let base = view.base.iter().map(|(name, value)| Ok((name.clone(), amount(*value, name)?)));
    let surcharge = view.surcharge.iter().map(|(format, value)| Ok((*format, amount(*value, format.as_str())?)));
    Ok(Tariff {
        base: base.collect::<ApiResult<_>>()?,
        weekend_percent: percent(view.weekend_percent, "at weekends")?,
        matinee_percent: percent(view.matinee_percent, "of a matinee")?,
        prime_percent: percent(view.prime_percent, "of the evening")?,
        surcharge: surcharge.collect::<ApiResult<_>>()?,
        tax_and_fee,
    })
}

/// Validates a price, minor units.
pub(super) fn amount(value: i64, what: &str) -> ApiResult<u64> {
    u64::try_from(value).ok().filter(|minor| *minor <= MAX_AMOUNT_MINOR).ok_or_else(|| {
        let detail = format!("The price of {what:?} is {value}; it is 0 to {MAX_AMOUNT_MINOR} in the smallest coin.");
        Problem::new(Code::PriceInvalid, detail)
    })
}

pub(super) async fn find_tariff(connection: &mut PgConnection, theatre: &str) -> sqlx::Result<Option<(Tariff, i32)>> {
    let sql = "SELECT tariff, version FROM theatre_tariffs WHERE theatre_id = $1";
    let row: Option<(Json<Tariff>, i32)> = sqlx::query_as(sql).bind(theatre).fetch_optional(connection).await?;
    Ok(row.map(|(tariff, version)| (tariff.0, version)))
}

/// Writes the tariff after version `before` (0 for the first); `false` when a newer version exists.
async fn write(
    tx: &mut PgConnection,
    theatre: &str,
    tariff: &Tariff,
    before: i32,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let done = if before == 0 {
        sqlx::query(
            "INSERT INTO theatre_tariffs (theatre_id, tariff, version, updated_at) VALUES ($1, $2, $3 + 1, $4)
             ON CONFLICT DO NOTHING",
        )
    } else {
        sqlx::query(
            "UPDATE theatre_tariffs SET tariff = $2, version = $3 + 1, updated_at = $4
             WHERE theatre_id = $1 AND version = $3",
        )
    };
    let done = done.bind(theatre).bind(Json(tariff)).bind(before).bind(to_utc(now)).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

async fn currency_of(connection: &mut PgConnection, theatre: &str) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT currency FROM theatres WHERE id = $1").bind(theatre).fetch_optional(connection).await
}

/// Returns the price categories of the layouts of a theatre's screens, each with its label; different labels of one
/// category are joined.
async fn categories_of(
    connection: &mut PgConnection,
    theatre: &str,
    limit: i64,
) -> sqlx::Result<Vec<(String, String)>> {
    let sql = "SELECT category ->> 'name' AS name,
                      string_agg(DISTINCT coalesce(category ->> 'label', category ->> 'name'), ' / ') AS label
               FROM screens screen
               JOIN layouts room ON room.id = screen.layout_id
               CROSS JOIN LATERAL jsonb_array_elements(room.categories) AS category
               WHERE screen.theatre_id = $1
               GROUP BY 1
               ORDER BY 1 LIMIT $2";
    sqlx::query_as(sql).bind_all((theatre, limit)).fetch_all(connection).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_and_overflowing_prices_are_refused_by_name() {
        let with = |minor: i64| {
            let view = TariffView { base: [("gold".to_owned(), minor)].into(), ..empty_tariff() };
            checked(&view).map_err(|problem| (problem.code(), problem.detail().contains("gold")))
        };
        assert!(with(0).is_ok() && with(1_250).is_ok() && with(MAX_AMOUNT_MINOR.cast_signed()).is_ok());
        for wrong in [-1, i64::MIN, MAX_AMOUNT_MINOR.cast_signed() + 1, i64::MAX] {
            assert_eq!(with(wrong).err(), Some((Code::PriceInvalid, true)), "{wrong}");
        }
        for percent in [-1, 1_001, 70_000, i64::MAX] {
            assert!(checked(&TariffView { matinee_percent: percent, ..empty_tariff() }).is_err(), "{percent}");
        }
    }

    #[test]
    fn tax_and_fee_are_accepted_up_to_their_limits() {
        let with = |tax_basis_points, fee_minor| {
            let tax_and_fee = TaxAndFee { tax_basis_points, fee_minor, ..TaxAndFee::default() };
            let tariff = checked(&TariffView { tax_and_fee: Some(tax_and_fee), ..empty_tariff() });
            tariff.map(|tariff| tariff.tax_and_fee == tax_and_fee).map_err(|problem| problem.code())
        };
        assert_eq!(with(MAX_TAX_BASIS_POINTS, MAX_AMOUNT_MINOR), Ok(true));
        assert_eq!(with(MAX_TAX_BASIS_POINTS + 1, 0), Err(Code::PriceInvalid));
        assert_eq!(with(0, MAX_AMOUNT_MINOR + 1), Err(Code::PriceInvalid));
    }
}
