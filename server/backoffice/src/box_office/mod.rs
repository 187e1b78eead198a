//! The box office: people at the counter of a theatre, their tills, what they sell and what they take back.
//!
//! A till is a person's drawer in a theatre, from its float to its cash-up (`tills`); its ledger is only ever added to
//! (`ledger`), in the transaction of what it is about. Seats are held as everybody holds them, and sold by the booking
//! machine like all others (`bookings::sell`); this room adds the money (`sell`, `take_back`), who sees whose seat is
//! whose (`holders`), and seats the house keeps (`house_seats`) or gives straight to a guest (`guest_seats`). Every act is
//! in the audit list.
//!
//! Locks are taken in one order: the till first, then the booking, its payment, its claims.
//!
//! What is not here: how a booking moves (`bookings`), who may do what (`accounts`), and what the pages look like.

mod caller_holds;
mod endpoints;
mod exchange;
mod find;
mod guest_seats;
mod holders;
mod house_seats;
mod ledger;
mod sell;
mod shows;
mod sql;
mod take_back;
mod tickets;
mod tills;

pub use caller_holds::is_held_for_callers;
pub use endpoints::routes;
pub use find::{ASKED_CHARS, by_id, by_person, by_reference};
pub use house_seats::{follow as follow_house_seats, keep_from_start, write as write_house_seats};
pub use shows::today;
pub use take_back::{pay_out, refund, undo};
pub use tickets::print;
pub use tills::{
    cash_up, cash_up_for, close_day, counted_for_me, drop_cash, last_close, mine as my_till, of_the_day,
    open as open_till,
};

use domain::money::Currency;

use crate::BackofficeState;
use http::Problem;
use identity::accounts::Staff;

/// Somebody at the counter of a theatre.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    /// Who.
    pub staff: &'a Staff,
    /// Where; they work there.
    pub theatre: &'a str,
}

impl Counter<'_> {
    /// Their account.
    const fn account(&self) -> uuid::Uuid {
        self.staff.session.account
    }

    /// What the theatre's money is.
    ///
    /// # Errors
    /// 404 when there is no such theatre.
    pub async fn currency(&self, state: &BackofficeState) -> Result<Currency, Problem> {
        let code = sql::currency(&mut *state.pg.acquire().await?, self.theatre).await?;
        let code = code.ok_or_else(|| Problem::not_found("theatre"))?;
        Currency::parse(&code).ok_or_else(|| Problem::internal(&format!("theatres.currency is {code:?}")))
    }
}
