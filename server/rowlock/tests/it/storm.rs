//! Opening night: 10,000 visitors, 300 seats, two server processes.

use std::sync::Arc;

use futures::StreamExt;
use reqwest::StatusCode;

use crate::world::{Visitor, World, text, until};

const VISITORS: usize = 10_000;
const SEATS: u32 = 300;
/// Requests in the air at once: what one machine's sockets bear, far above what it can serve at once.
const IN_THE_AIR: usize = 500;

/// What became of a visitor.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Bought,
    ToldWhichSeat,
    Other(String),
}

/// Everyone wants one seat, all seats are wanted equally, and the winners pay at once.
async fn try_luck(visitor: Visitor, seat: u32) -> Fate {
    let (status, answer) = visitor.hold(&[seat]).await;
    if status == StatusCode::LOCKED || status == StatusCode::CONFLICT {
        let named = answer["seats"].as_array().is_some_and(|seats| seats.len() == 1 && seats[0]["seat"] == seat);
        return if named { Fate::ToldWhichSeat } else { Fate::Other(format!("{status} {answer}")) };
    }
    if status != StatusCode::CREATED {
        return Fate::Other(format!("{status} {answer}"));
    }
    let (status, booking) = visitor.book(&answer).await;
    if status != StatusCode::CREATED {
        return Fate::Other(format!("{status} {booking}"));
    }
    let (status, paid) = visitor.pay(&booking, Some("tok_paid")).await;
    if status == StatusCode::OK && paid["state"] == "CONFIRMED" {
        Fate::Bought
    } else {
        Fate::Other(format!("{status} {paid}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_people_want_three_hundred_seats_and_three_hundred_are_sold() {
    let world = Arc::new(World::start(2, &[]).await);
    let fates: Vec<Fate> = futures::stream::iter(0..VISITORS)
        .map(|number| {
            // Two after each other want the same seat, at different servers; the rest of its thirty-odd
            // suitors are spread over the whole rush.
            let seat = (number as u32 / 2 * 7) % SEATS;
            try_luck(world.visitor_at(number % 2), seat)
        })
        .buffer_unordered(IN_THE_AIR)
        .collect()
        .await;

    let strange: Vec<_> = fates.iter().filter(|fate| matches!(fate, Fate::Other(_))).take(5).collect();
    assert!(strange.is_empty(), "neither a seat nor a named conflict: {strange:?}");
    let bought = fates.iter().filter(|fate| **fate == Fate::Bought).count();
    assert_eq!(bought, SEATS as usize);
    assert_eq!(fates.len() - bought, VISITORS - SEATS as usize);

    assert_eq!(world.count("SELECT count(*) FROM seat_claims").await, i64::from(SEATS), "one claim row a seat");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, i64::from(SEATS));
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, i64::from(SEATS));
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, i64::from(SEATS));
    let paid = "SELECT count(*) FROM payments WHERE state = 'succeeded' AND refund_state IS NULL";
    assert_eq!(world.count(paid).await, i64::from(SEATS), "charged once each, nothing sent back");

    // Both servers' maps come to say so, each over its own hub.
    let sold_out = "2".repeat(SEATS as usize);
    for server in 0..2 {
        let visitor = world.visitor_at(server);
        until("the map is sold out", || async { visitor.states().await == sold_out }).await;
    }
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let late = world.visitor();
    let (status, answer) = late.hold(&[7]).await;
    assert_eq!((status, text(&answer["code"])), (StatusCode::CONFLICT, "seats_taken"));
    Arc::into_inner(world).expect("nobody else is in this world").end().await;
}
