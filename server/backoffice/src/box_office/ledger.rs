//! Views of tills with the sums of their ledgers.

use std::collections::HashMap;

use domain::api::box_office::{TillRow, TillView};
use domain::money::{Currency, Money};
use domain::till::{LedgerLine, Means, TillEntryKind, TillSums};
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, LineRow, SumRow, TillRecord};
use http::Problem;
use platform::clock::{from_utc, rfc3339};

/// Maximum number of ledger lines in a view.
const MAX_LINES: i64 = 200;

/// Returns these tills with their sums, in their order.
pub(super) async fn views(tx: &mut PgConnection, tills: &[TillRecord]) -> Result<Vec<TillView>, Problem> {
    let ids: Vec<Uuid> = tills.iter().map(|till| till.id).collect();
    let mut lines: HashMap<Uuid, Vec<LedgerLine>> = HashMap::new();
    for row in sql::sums(tx, &ids).await? {
        lines.entry(row.till_id).or_default().push(line_of(&row)?);
    }
    tills.iter().map(|till| view(till, lines.remove(&till.id).unwrap_or_default())).collect()
}

/// Returns one till with its sums and latest lines.
pub(super) async fn with_lines(tx: &mut PgConnection, till: &TillRecord) -> Result<TillView, Problem> {
    let mut view = one(tx, till).await?;
    let currency = view.float.currency;
    let rows = sql::lines(tx, till.id, MAX_LINES).await?;
    view.rows = rows.into_iter().map(|row| row_view(row, currency)).collect::<Result<_, _>>()?;
    Ok(view)
}

/// Returns one till with its sums.
pub(super) async fn one(tx: &mut PgConnection, till: &TillRecord) -> Result<TillView, Problem> {
    let views = views(tx, std::slice::from_ref(till)).await?;
    views.into_iter().next().ok_or_else(|| Problem::internal(&"a till without a view"))
}

fn view(till: &TillRecord, lines: Vec<LedgerLine>) -> Result<TillView, Problem> {
    let currency = Currency::parse(&till.currency).ok_or_else(|| corrupt("tills.currency", &till.currency))?;
    let too_much = || Problem::internal(&format!("the ledger of till {} does not add up", till.id));
    let sums = TillSums::of(lines).ok_or_else(too_much)?;
    let expected = sums.expected().ok_or_else(too_much)?;
    let money = |minor| Money::new(minor, currency);
    Ok(TillView {
        id: till.id,
        person: till.person.clone(),
        opened_at: rfc3339(from_utc(till.opened_at)),
        closed_at: till.closed_at.map(|at| rfc3339(from_utc(at))),
        float: money(sums.float),
        cash: money(sums.cash),
        card: money(sums.card),
        dropped: money(sums.dropped),
        expected: money(expected),
        counted: till.counted_minor.map(money),
        difference: till.counted_minor.map(|counted| money(counted - expected)),
        counted_by: till.counted_by.clone(),
        counted_why: till.counted_why.clone(),
        rows: Vec::new(),
    })
}

fn line_of(row: &SumRow) -> Result<LedgerLine, Problem> {
    Ok((entry_of(&row.kind)?, means_of(&row.means)?, row.amount_minor))
}

fn entry_of(text: &str) -> Result<TillEntryKind, Problem> {
    TillEntryKind::parse(text).ok_or_else(|| corrupt("till_rows.kind", text))
}

fn means_of(text: &str) -> Result<Means, Problem> {
    Means::parse(text).ok_or_else(|| corrupt("till_rows.means", text))
}

fn row_view(row: LineRow, currency: Currency) -> Result<TillRow, Problem> {
    Ok(TillRow {
        number: row.number.cast_unsigned(),
        kind: entry_of(&row.kind)?,
        means: means_of(&row.means)?,
        amount: Money::new(row.amount_minor, currency),
        booking: row.booking_id,
        reference: row.reference,
        reason: row.reason,
        at: rfc3339(from_utc(row.at)),
    })
}

/// An invalid stored value is an error that names it, never a default.
fn corrupt(column: &str, value: &str) -> Problem {
    Problem::internal(&format!("{column} is {value:?}"))
}
