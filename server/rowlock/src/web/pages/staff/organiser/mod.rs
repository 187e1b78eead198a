//! Pages of organisers: forms without a script, answered by a page or by the way on. They do what the API does, through
//! the same services.

pub(super) mod films;
pub(super) mod house_seats;
pub(super) mod moving;
pub(super) mod prices;
pub(super) mod programme;
pub(super) mod rooms;
pub(super) mod show;
pub(super) mod waiting_room;

use domain::money::Currency;

use super::super::PageError;

/// The currency of prices that are shown.
fn currency_of(code: &str) -> Result<Currency, PageError> {
    Currency::parse(code).ok_or(PageError::Fault)
}
