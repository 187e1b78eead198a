//! A hold whose places are added and removed during two concurrent checkouts must not get places for free.
//!
//! Two checkouts of one booking wait for the same lock. The second one once read lines from before its wait and left
//! places that its total did not include: five places were sold for the price of one seat. Runs a few rounds at two
//! servers by default; `ROWLOCK_FREE_PLACES=500` runs more (`cargo xtask prove free-places`).

use crate::commits::NO_GATHER;
use crate::prelude::*;

const DEFAULT_ROUNDS: u32 = 24;
const CONCURRENT: u32 = 4;
/// Rounds in one show: each takes another seat.
const ROUNDS_OF_A_SHOW: u32 = 240;
const PLACES: u32 = 5;
/// Largest delay between the two checkouts, in milliseconds; each delay is used in turn.
const MAX_DELAY_MS: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundOutcome {
    /// Sold, and every line is paid.
    Sold,
    /// Not sold: the seats changed after the checkout.
    Refused,
}

async fn show_with_area(world: &World) -> Uuid {
    let show = insert_show(&world.pg, 300_000, 24 * 3600).await;
    world.open_floor_of(show, (ROUNDS_OF_A_SHOW * PLACES * 2).cast_signed()).await;
    show
}

async fn attempt(world: &World, show: Uuid, round: u32) -> RoundOutcome {
    let here = world.visitor_at(0).at_show(show);
    let there = here.moved_to(world, 1);
    let hold = expect_answer(here.hold(&[round % ROUNDS_OF_A_SHOW]).await, StatusCode::CREATED);
    let own = format!("/api/v1/shows/{show}/holds/{}", text(&hold["id"]));
    let change = async |visitor: &Visitor, verb: &str| {
        let request_body = json!({ verb: [{ "area": 0, "quantity": PLACES }] });
        expect_answer(visitor.call(Method::PATCH, &own, request_body).await, StatusCode::OK);
    };
    let book = async |visitor: &Visitor| expect_answer(visitor.book(&hold).await, StatusCode::CREATED);
    let booking = book(&here).await;
    change(&here, "add_places").await;
    let later = Duration::from_millis(u64::from(round) % MAX_DELAY_MS);
    let second = async {
        tokio::time::sleep(later).await;
        change(&there, "remove_places").await;
        book(&there).await
    };
    tokio::join!(book(&here), second);
    change(&here, "add_places").await;
    let (status, paid) = here.pay(&booking, Some("tok_paid")).await;
    if status == StatusCode::CONFLICT {
        assert_eq!(text(&paid["code"]), "wrong_state", "{paid}");
        return RoundOutcome::Refused;
    }
    assert_eq!((status, text(&paid["state"])), (StatusCode::OK, "CONFIRMED"), "{paid}");
    assert_eq!(paid["total"]["minor"], sum_of_lines(&paid), "round {round}: the total is the sum of its lines: {paid}");
    RoundOutcome::Sold
}

fn sum_of_lines(booking: &Value) -> i64 {
    let lines = |name: &str| booking[name].as_array().cloned().unwrap_or_default();
    let seats: i64 = lines("seats").iter().map(|seat| seat["price"]["minor"].as_i64().expect("a price")).sum();
    let places = lines("places")
        .into_iter()
        .map(|line| line["price"]["minor"].as_i64().expect("a price") * line["quantity"].as_i64().expect("a number"));
    seats + places.sum::<i64>()
}

/// Value of issued tickets beyond the payment, in cents.
const UNPAID_VALUE: &str = "
    SELECT coalesce(sum((SELECT count(*) FROM tickets WHERE booking_id = booking.id)
                        + (SELECT count(*) FROM place_tickets WHERE booking_id = booking.id)), 0)::bigint * 1250
           - (SELECT coalesce(sum(amount_minor), 0)::bigint FROM payments)
    FROM bookings booking";

async fn run_rounds(gather: (&str, &str), rounds: u32) {
    let world = World::start(2, &[gather]).await;
    let began = Instant::now();
    let (mut sold, mut refused, mut done) = (0, 0, 0);
    let mut show = world.show;
    while done < rounds {
        if done % ROUNDS_OF_A_SHOW == 0 {
            show = show_with_area(&world).await;
        }
        let next = (done + CONCURRENT).min(rounds);
        for outcome in join_all((done..next).map(|round| attempt(&world, show, round))).await {
            match outcome {
                RoundOutcome::Sold => sold += 1,
                RoundOutcome::Refused => refused += 1,
            }
        }
        done = next;
    }
    assert_eq!(PRICE, 1_250, "the query uses this price");
    let free = world.count(UNPAID_VALUE).await;
    println!(
        "free places, {gather:?}: {done} rounds in {:?}, {sold} sold, {refused} refused, {free} cents not paid for",
        began.elapsed()
    );
    assert_eq!(free, 0, "no ticket was free");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_checkouts_sell_no_unpaid_place() {
    let asked = std::env::var("ROWLOCK_FREE_PLACES").ok().filter(|asked| !asked.is_empty());
    let asked = asked.map(|asked| asked.parse().expect("ROWLOCK_FREE_PLACES is a number"));
    for gather in [NO_GATHER, ("COMMIT_GATHER_MS", "20")] {
        run_rounds(gather, asked.unwrap_or(DEFAULT_ROUNDS)).await;
    }
}
