//! Opening night: 10,000 visitors, 300 seats, two server processes.

use futures::StreamExt;

use crate::prelude::*;

const VISITORS: usize = 10_000;
const SEATS: u32 = 300;
/// Concurrent requests: what one machine's sockets bear, far above what the servers process at once.
const CONCURRENT: usize = 500;

#[derive(Debug, PartialEq, Eq)]
enum VisitorOutcome {
    Bought,
    ToldWhichSeat,
    Other(String),
}

/// Each visitor tries one seat, all seats are tried equally often, and successful visitors pay at once.
async fn hold_and_pay(visitor: Visitor, seat: u32) -> VisitorOutcome {
    let (status, answer) = visitor.hold(&[seat]).await;
    if status == StatusCode::LOCKED || status == StatusCode::CONFLICT {
        let named = answer["seats"].as_array().is_some_and(|seats| seats.len() == 1 && seats[0]["seat"] == seat);
        return if named { VisitorOutcome::ToldWhichSeat } else { VisitorOutcome::Other(format!("{status} {answer}")) };
    }
    if status != StatusCode::CREATED {
        return VisitorOutcome::Other(format!("{status} {answer}"));
    }
    let (status, booking) = visitor.book(&answer).await;
    if status != StatusCode::CREATED {
        return VisitorOutcome::Other(format!("{status} {booking}"));
    }
    let (status, paid) = visitor.pay(&booking, Some("tok_paid")).await;
    if status == StatusCode::OK && paid["state"] == "CONFIRMED" {
        VisitorOutcome::Bought
    } else {
        VisitorOutcome::Other(format!("{status} {paid}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_visitors_buy_exactly_three_hundred_seats() {
    let world = Arc::new(World::start(2, &[]).await);
    let fates: Vec<VisitorOutcome> = futures::stream::iter(0..VISITORS)
        .map(|number| {
            // Two consecutive visitors try the same seat at different servers; the seat's other thirty visitors are
            // spread over the whole test.
            let seat = (number as u32 / 2 * 7) % SEATS;
            hold_and_pay(world.visitor_at(number % 2), seat)
        })
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;

    let strange: Vec<_> = fates.iter().filter(|fate| matches!(fate, VisitorOutcome::Other(_))).take(5).collect();
    assert!(strange.is_empty(), "neither a seat nor a named conflict: {strange:?}");
    let bought = fates.iter().filter(|fate| **fate == VisitorOutcome::Bought).count();
    assert_eq!(bought, SEATS as usize);
    assert_eq!(fates.len() - bought, VISITORS - SEATS as usize);

    assert_eq!(world.count("SELECT count(*) FROM seat_claims").await, i64::from(SEATS), "one claim row a seat");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, i64::from(SEATS));
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, i64::from(SEATS));
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, i64::from(SEATS));
    let paid = "SELECT count(*) FROM payments WHERE state = 'succeeded' AND refund_state IS NULL";
    assert_eq!(world.count(paid).await, i64::from(SEATS), "charged once each, without refunds");

    // Both servers' maps show it, each through its own hub.
    let sold_out = "2".repeat(SEATS as usize);
    for server in 0..2 {
        let visitor = world.visitor_at(server);
        wait_until("the map is sold out", || async { visitor.seat_states().await == sold_out }).await;
    }
    world.wait_for_empty_outbox().await;
    let late = world.visitor();
    expect_problem(late.hold(&[7]).await, StatusCode::CONFLICT, "seats_taken");
    Arc::into_inner(world).expect("no other task uses the world").end().await;
}
