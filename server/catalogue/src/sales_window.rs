//! Checks whether a show is on sale at an instant.

use domain::api::organiser::Sales;
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::time::{MINUTE_MS, Timestamp};
use http::{Code, Problem};

use crate::Show;

/// Refuses a show that was called off.
///
/// # Errors
/// 409 then.
pub fn refuse_called_off(show: &Show) -> Result<(), Problem> {
    if show.is_called_off() {
        let detail = "This show will not take place. Everything paid for it goes back in full.";
        return Err(Problem::new(Code::SalesClosed, detail));
    }
    Ok(())
}

/// Refuses a show that can no longer be booked.
///
/// # Errors
/// 409 within [`SALES_CLOSE_BEFORE_START_MS`] of the start, after it, and when the show was called off.
pub fn sales_open(show: &Show, now: Timestamp) -> Result<(), Problem> {
    refuse_called_off(show)?;
    if show.starts_at.since(now) > SALES_CLOSE_BEFORE_START_MS {
        return Ok(());
    }
    let minutes = SALES_CLOSE_BEFORE_START_MS / MINUTE_MS;
    let detail = format!("Booking closes {minutes} minutes before the start. The box office may help.");
    Err(Problem::new(Code::SalesClosed, detail))
}

/// Refuses a show that is not on sale: [`sales_open`] refuses it, or its organiser has not opened it.
///
/// # Errors
/// 409 as [`sales_open`], and before sales begin or while they are paused.
pub fn on_sale(show: &Show, now: Timestamp) -> Result<(), Problem> {
    sales_open(show, now)?;
    match (show.sales, show.sales_from) {
        (Sales::Open, Some(from)) if from > now => {
            let detail = format!("Seats of this show are sold from {} on.", show.local_time(from));
            Err(Problem::new(Code::SalesClosed, detail))
        }
        (Sales::Open, _) => Ok(()),
        (Sales::Planned, _) => Err(Problem::new(Code::SalesClosed, "This show is not for sale yet.")),
        (Sales::Paused, _) => {
            let detail = "Sales of this show are paused. What you hold you may still pay for.";
            Err(Problem::new(Code::SalesClosed, detail))
        }
    }
}
