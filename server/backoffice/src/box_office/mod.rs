//! The box office: tills, sales and refunds at the counter of a theatre.
//!
//! A till belongs to one person in one theatre, from its float to its cash-up (`tills`). Its ledger is append-only;
//! each line is written in the transaction it belongs to. Seats are held and sold like online seats
//! (`bookings::sell`). This module adds the money (`sell`, `take_back`), the holders of seats (`shows`), house seats
//! (`house_seats`) and guests' seats (`guest_seats`). Every action is recorded in the audit list.
//!
//! Lock order: the till first, then the booking, its payment, its claims.
//!
//! Elsewhere: the states of a booking (`bookings`), roles (`accounts`), and the pages.

mod caller_holds;
mod endpoints;
mod exchange;
mod find;
mod guest_seats;
mod house_seats;
mod sell;
mod shows;
mod take_back;
mod tickets;
mod tills;

pub use caller_holds::is_held_for_callers;
pub use endpoints::routes;
pub use find::{SEARCH_TERM_CHARS, by_id, by_person, by_reference};
pub use house_seats::{follow as correct_house_seats_on_map, keep_from_start, write as write_house_seats};
pub use shows::today;
pub use take_back::{pay_out, refund, undo};
pub use tickets::print;
pub use tills::{
    cash_up, cash_up_for, close_day, drop_cash, last_close, last_till_counted_by_manager, mine as my_till, of_the_day,
    open as open_till,
};

use domain::money::Currency;
use domain::time::Timestamp;
use sqlx::PgConnection;

use crate::BackofficeState;
use http::{ApiResult, Problem};
use identity::accounts::Staff;
use identity::audit::{self, AuditEntry};

/// A member of staff at the counter of a theatre.
#[derive(Clone, Copy, Debug)]
pub struct CounterStaff<'a> {
    /// The member of staff.
    pub staff: &'a Staff,
    /// The theatre; the member of staff has a role there.
    pub theatre: &'a str,
}

impl CounterStaff<'_> {
    const fn account(&self) -> uuid::Uuid {
        self.staff.session.account
    }

    /// Records an action of the member of staff in the audit list.
    async fn record(
        &self,
        tx: &mut PgConnection,
        act: &'static str,
        subject: String,
        words: &str,
        now: Timestamp,
    ) -> sqlx::Result<()> {
        audit::record(tx, &AuditEntry::by(self.account(), act, subject, words).at(self.theatre), now).await
    }

    /// Returns the currency of the theatre.
    ///
    /// # Errors
    /// 404 when there is no such theatre.
    pub async fn currency(&self, state: &BackofficeState) -> ApiResult<Currency> {
        let code = tills::currency(&mut *state.pg.acquire().await?, self.theatre).await?;
        let code = code.ok_or_else(|| Problem::not_found("theatre"))?;
        Currency::parse(&code).ok_or_else(|| Problem::internal(&format!("theatres.currency is {code:?}")))
    }
}
