//! Notices to a buyer about a cancelled booking or part, or about late money.

use domain::booking::{BookingState, MoneyState};
use domain::money::Money;
use domain::seats::sort_for_display;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::SellingState;
use crate::bookings::effects::EffectError;
use crate::bookings::mail_links;
use crate::bookings::money::refunds::{self, RefundRow};
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use platform::database::BindAll;
use tickets::NoticeMail;

/// Names of the `domain::booking::BookingEvent`s with a notice.
const NOTICE_EVENTS: &[&str] = &[
    "cancelled_by_buyer",
    "cancelled_by_staff",
    "seats_lost",
    "payment_succeeded",
    "late_money_moved",
    "late_money_returned",
];
/// Events with a notice about some seats.
const SEAT_NOTICE_EVENTS: &[&str] = &["part_cancelled_by_buyer", "part_cancelled_by_staff", "difference_returned"];

/// Sends the notice about a refund of the booking, or about all of it (0). An effect, performed at least once.
pub(crate) async fn send(state: &SellingState, show: &Show, row: &BookingRow, number: u32) -> Result<(), EffectError> {
    // Sold at the counter without an address: the customer is at the counter when it is returned.
    if row.buyer.1.is_empty() {
        return Ok(());
    }
    let mut connection = state.pg.acquire().await?;
    let refunds = refunds::of_booking(&mut connection, row.id).await?;
    let refund = refunds.into_iter().find(|refund| refund.number.cast_unsigned() == number);
    let last =
        last_event(&mut connection, row.id, if number == 0 { NOTICE_EVENTS } else { SEAT_NOTICE_EVENTS }).await?;
    let moved = if row.machine.money == MoneyState::Moved { moved_to(&mut connection, row.id).await? } else { None };
    drop(connection);
    let (event, from, reason) = last.unwrap_or_default();
    let (headline, mut paragraphs) = match (number, moved) {
        (0, Some((reference, seats))) => moved_words(&reference, &seats),
        (0, None) => whole_words(&event, from.as_deref(), &reason),
        _ => part_words(&event, &reason, refund.as_ref()),
    };
    paragraphs.extend(money_words(row, number, refund.as_ref()));
    let mail = NoticeMail {
        booking: row.id,
        number,
        reference: row.reference.clone(),
        to_name: row.buyer.0.clone(),
        to_email: row.buyer.1.clone(),
        headline,
        paragraphs,
        film: show.film.clone(),
        show: format!("{}, {}, {}", show.starts_local, show.theatre, show.screen),
        booking_url: mail_links::page_url(&state.site.public_url, row.id, state.clock.now()),
        at: state.clock.now(),
    };
    state.mailer.send_notice(&mail).await.map_err(Into::into)
}

async fn last_event(
    tx: &mut PgConnection,
    booking: Uuid,
    of: &[&str],
) -> sqlx::Result<Option<(String, Option<String>, String)>> {
    let sql = "SELECT event, from_state, reason FROM booking_events WHERE booking_id = $1 AND event = ANY($2)
               ORDER BY number DESC LIMIT 1";
    sqlx::query_as(sql).bind_all((booking, of)).fetch_optional(tx).await
}

/// Returns reference and seats of the booking that this booking's money pays for.
async fn moved_to(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<(String, String)>> {
    let sql = "SELECT other.reference,
                      ARRAY(SELECT label FROM booking_seats WHERE booking_id = other.id ORDER BY seat_no)
               FROM payments payment JOIN bookings other ON other.id = payment.moved_to WHERE payment.booking_id = $1";
    let other: Option<(String, Vec<String>)> = sqlx::query_as(sql).bind(booking).fetch_optional(tx).await?;
    Ok(other.map(|(reference, mut seats)| {
        sort_for_display(&mut seats, String::as_str);
        (reference, seats.join(", "))
    }))
}

fn moved_words(reference: &str, seats: &str) -> (String, Vec<String>) {
    let text = format!(
        "Your payment came after the time had run out. These seats were still available, so it pays for booking \
         {reference}: {seats}. The tickets come in a separate e-mail."
    );
    ("Your payment came late, but you have seats".to_owned(), vec![text])
}

fn whole_words(event: &str, from: Option<&str>, reason: &str) -> (String, Vec<String>) {
    let (headline, why) = match event {
        "cancelled_by_buyer" => ("You cancelled your booking", "Your seats are back on sale.".to_owned()),
        "cancelled_by_staff" => ("Your booking was cancelled", reason.to_owned()),
        // Paid in time but not sold: the amount was not the agreed one.
        "payment_succeeded" if from == Some("PAYMENT_PENDING") => {
            ("Your payment was not the agreed amount", reason.to_owned())
        }
        "seats_lost" => ("We could not give you the seats", reason.to_owned()),
        _ => ("Your payment came too late", reason.to_owned()),
    };
    (headline.to_owned(), vec![why])
}

fn part_words(event: &str, reason: &str, refund: Option<&RefundRow>) -> (String, Vec<String>) {
    let names = refund.map(|refund| refund.seats.join(", ")).unwrap_or_default();
    if refund.is_some_and(|refund| refund.seats.is_empty()) {
        // A refund without seats is the price difference of an exchange.
        let text =
            "Your booking was exchanged for other seats, which cost less. Their tickets come in a separate e-mail.";
        return ("Your seats were exchanged, and you get a refund".to_owned(), vec![text.to_owned()]);
    }
    let why = if event == "part_cancelled_by_staff" {
        reason.to_owned()
    } else {
        "You cancelled part of your booking.".to_owned()
    };
    (format!("Cancelled: {names}"), vec![why, "You keep your other seats, with the tickets you have.".to_owned()])
}

fn money_words(row: &BookingRow, number: u32, refund: Option<&RefundRow>) -> Option<String> {
    let money = |minor| Money::new(minor, row.machine.total.currency);
    let back = |amount: String, fee: i64| {
        let fee = if fee > 0 { format!(" The cancellation fee of {} is kept.", money(fee)) } else { String::new() };
        format!("{amount} is refunded the way you paid.{fee} It can take a few days until your bank shows it.")
    };
    match (refund, row.machine.money) {
        (_, MoneyState::Moved) => None,
        (Some(refund), _) if refund.amount_minor > 0 => {
            Some(back(money(refund.amount_minor).to_string(), refund.fee_minor))
        }
        (None, MoneyState::Refunding | MoneyState::Refunded) if number == 0 => Some(back("Your money".to_owned(), 0)),
        (None, _) if number == 0 && row.machine.state == BookingState::Cancelled => {
            Some("Nothing was charged. If your bank shows a payment anyway, it is refunded automatically.".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_has_a_headline_and_a_reason() {
        for event in NOTICE_EVENTS {
            let (headline, paragraphs) = whole_words(event, None, "Because.");
            assert!(!headline.is_empty() && !paragraphs[0].is_empty(), "{event}");
        }
        let wrong_amount = whole_words("payment_succeeded", Some("PAYMENT_PENDING"), "€12.49 where €12.50 was agreed.");
        assert_eq!(wrong_amount.0, "Your payment was not the agreed amount");
        let late = whole_words("payment_succeeded", Some("EXPIRED"), "It came after its time was over.");
        assert_eq!(late.0, "Your payment came too late");
        assert_eq!(whole_words("cancelled_by_staff", None, "The projector is broken.").1, ["The projector is broken."]);
        assert!(part_words("part_cancelled_by_staff", "C7: broken.", None).1[0].contains("broken"));
        let over = RefundRow {
            number: 1,
            amount_minor: 1_250,
            fee_minor: 0,
            requested_at: chrono::DateTime::UNIX_EPOCH,
            settled_at: None,
            came_back: false,
            seats: vec![],
        };
        let (headline, paragraphs) = part_words("difference_returned", "The new seats cost less.", Some(&over));
        assert!(!headline.contains("Cancelled") && paragraphs[0].contains("exchanged"), "{headline} {paragraphs:?}");
    }
}
