//! The total of a booking is the sum of its lines: in the code, for any interleaving of requests, and in the database.

use sqlx::PgPool;
use sqlx::postgres::PgQueryResult;
use tokio::task::JoinHandle;

use crate::prelude::*;

/// Statements of this world that wait for a lock.
pub const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
const WRONG_TOTALS: &str = "
    SELECT count(*) FROM bookings booking
    WHERE total_minor <> (SELECT coalesce(sum(price_minor), 0) FROM booking_seats WHERE booking_id = booking.id)
                         + (SELECT coalesce(sum(price_minor * quantity), 0) FROM booking_places
                            WHERE booking_id = booking.id)";
const REFUSAL: &str = "booking_total_is_of_lines";

async fn change_places(visitor: &Visitor, hold: &Value, verb: &str) {
    let own = format!("/api/v1/shows/{}/holds/{}", visitor.show, text(&hold["id"]));
    let request_body = json!({ verb: [{ "area": 0, "quantity": 5 }] });
    expect_answer(visitor.call(Method::PATCH, &own, request_body).await, StatusCode::OK);
}

fn spawn_checkout(visitor: &Visitor, hold: &Value) -> JoinHandle<JsonAnswer> {
    let (visitor, hold) = (visitor.clone(), hold.clone());
    tokio::spawn(async move { visitor.book(&hold).await })
}

async fn wait_for_lock_waiters(world: &World, count: i64) {
    wait_until(&format!("{count} wait for a lock"), || async { world.count(WAITING).await == count }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkout_that_waited_for_a_lock_charges_for_every_line_it_leaves() {
    let world = World::start(2, &[]).await;
    world.open_floor(20).await;
    let here = world.visitor();
    let there = here.moved_to(&world, 1);
    let (hold, booking) = here.check_out(&[1]).await;
    change_places(&here, &hold, "add_places").await;
    // Both wait for the row lock, and have read the lines before the other wrote them.
    let keeper = world.lock_booking(text(&booking["id"])).await;
    let first = spawn_checkout(&here, &hold);
    wait_for_lock_waiters(&world, 1).await;
    change_places(&there, &hold, "remove_places").await;
    let second = spawn_checkout(&there, &hold);
    wait_for_lock_waiters(&world, 2).await;
    keeper.rollback().await.expect("the lock is released");
    for (checkout, total) in [(first, 6 * PRICE), (second, PRICE)] {
        let (status, revised) = checkout.await.expect("the task ends");
        assert_eq!((status, &revised["total"]["minor"]), (StatusCode::CREATED, &json!(total)), "{revised}");
    }
    let seen = here.booking(&booking).await;
    assert_eq!((&seen["total"]["minor"], &seen["places"]), (&json!(PRICE), &Value::Null), "{seen}");
    assert_eq!(world.count(WRONG_TOTALS).await, 0);
    // With the places in the hold again, the booking differs from the hold.
    change_places(&here, &hold, "add_places").await;
    expect_problem(here.pay(&booking, Some("tok_paid")).await, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_revised_after_its_check_is_not_charged() {
    let (world, here) = World::with_visitor(2, &[]).await;
    let there = here.moved_to(&world, 1);
    let (hold, booking) = here.check_out(&[1]).await;
    // Another tab's checkout of the earlier hold: it has locked the booking and is about to commit.
    let mut other = world.lock_booking(text(&booking["id"])).await;
    for statement in [
        "UPDATE bookings SET version = version + 1, total_minor = 2500 WHERE id = $1::uuid",
        "INSERT INTO booking_seats (booking_id, seat_no, label, category, price_minor)
         VALUES ($1::uuid, 2, 'A3', 'Gold', 1250)",
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         SELECT id, version, 'revised', state, state, money, 'buyer', 'Another tab.', now()
         FROM bookings WHERE id = $1::uuid",
    ] {
        sqlx::query(statement).bind(text(&booking["id"])).execute(&mut *other).await.expect("the booking is revised");
    }
    let (payer, its) = (there.clone(), booking.clone());
    let payment = tokio::spawn(async move { payer.pay(&its, Some("tok_paid")).await });
    wait_for_lock_waiters(&world, 1).await;
    other.commit().await.expect("the revision is committed");
    expect_problem(payment.await.expect("the task ends"), StatusCode::CONFLICT, "wrong_state");
    let written = "SELECT (SELECT count(*) FROM payments) + (SELECT count(*) FROM seat_claims)";
    assert_eq!(world.count(written).await, 0, "nothing is claimed or charged");
    // Once the booking equals the hold, the payment succeeds.
    let (_, again) = here.book(&hold).await;
    let paid = expect_state(there.pay(&again, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    assert_eq!(paid["total"]["minor"], PRICE);
}

/// Inserts a booking with this total and state, and with one seat for 100 cents if `has_a_seat`.
async fn booking_of(pg: &PgPool, show: Uuid, state: &str, total: i64, has_a_seat: bool) -> sqlx::Result<Uuid> {
    let id = new_id();
    let at_once = sqlx::query(
        "WITH made AS (
             INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                                   buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
             VALUES ($1, $1::text, $2, 'no-owner', $1, 1, $3, 'NONE', $4, 'EUR', '', '', '', '',
                     now() + interval '1 day', now(), now())),
         seats AS (INSERT INTO booking_seats SELECT $1, 1, 'A2', 'Gold', 100 WHERE $5)
         SELECT 1",
    );
    at_once.bind(id).bind(show).bind(state).bind(total).bind(has_a_seat).execute(pg).await.map(|_| id)
}

async fn run(pg: &PgPool, statement: &'static str, booking: Uuid) -> sqlx::Result<PgQueryResult> {
    sqlx::query(statement).bind(booking).execute(pg).await
}

#[track_caller]
fn assert_total_refused(what: &str, outcome: sqlx::Result<PgQueryResult>) {
    assert_refused(what, outcome, CHECK_VIOLATION, REFUSAL);
}

const SUBMIT: &str = "UPDATE bookings SET state = 'PAYMENT_PENDING', version = version + 1 WHERE id = $1";
const ADD_SEAT: &str = "INSERT INTO booking_seats VALUES ($1, 7, 'A8', 'Gold', 100)";
const ADD_PLACES: &str = "INSERT INTO booking_places VALUES ($1, 0, 2, 'Floor', 'Gold', 50)";

#[tokio::test(flavor = "multi_thread")]
async fn table_refuses_a_payment_of_another_sum_than_the_lines() {
    let world = World::start(0, &[]).await;
    let (pg, show) = (&world.pg, world.show);
    for (total, has_a_seat) in [(100, false), (0, true), (99, true), (101, true)] {
        let booking = booking_of(pg, show, "SEATS_LOCKED", total, has_a_seat).await.expect("no payment has begun");
        assert_total_refused(&format!("{total} for a seat: {has_a_seat}"), run(pg, SUBMIT, booking).await);
    }
    let right = booking_of(pg, show, "SEATS_LOCKED", 100, true).await.expect("the booking is written");
    run(pg, SUBMIT, right).await.expect("the total matches");
    let booking = booking_of(pg, show, "SEATS_LOCKED", 200, true).await.expect("the booking is written");
    assert_total_refused("before its places", run(pg, SUBMIT, booking).await);
    run(pg, ADD_PLACES, booking).await.expect("no payment has begun");
    run(pg, SUBMIT, booking).await.expect("two places for 50 each, and a seat for 100");
    // By an insert, with the lines in the same statement, in every state.
    for state in ["PAYMENT_PENDING", "PAYMENT_SUCCEEDED", "CONFIRMED", "CANCELLED", "EXPIRED"] {
        for (total, has_a_seat) in [(100, false), (0, true), (99, true)] {
            let made = booking_of(pg, show, state, total, has_a_seat).await;
            assert_total_refused(&format!("{state}, {total}"), made.map(|_| PgQueryResult::default()));
        }
        booking_of(pg, show, state, 100, true).await.expect("the total matches");
    }
    // They remain in the database, and are unpaid.
    world.end_with_known_findings(&["SEATS_LOCKED, costs"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn table_refuses_changes_of_a_total_or_line_once_a_payment_started() {
    let world = World::start(0, &[]).await;
    let (pg, show) = (&world.pg, world.show);
    let other = booking_of(pg, show, "SEATS_LOCKED", 0, false).await.expect("no payment has begun");
    let give_away =
        "UPDATE booking_seats SET booking_id = (SELECT id FROM bookings WHERE state = 'SEATS_LOCKED' LIMIT 1)
                     WHERE booking_id = $1";
    for state in ["PAYMENT_PENDING", "CONFIRMED", "CANCELLED"] {
        let booking = booking_of(pg, show, state, 100, true).await.expect("the total matches");
        for change in [
            ADD_SEAT,
            ADD_PLACES,
            "DELETE FROM booking_seats WHERE booking_id = $1",
            "UPDATE booking_seats SET price_minor = 99 WHERE booking_id = $1",
            give_away,
            "UPDATE bookings SET total_minor = 1, version = version + 1 WHERE id = $1",
            "UPDATE bookings SET total_minor = 101, version = version + 1 WHERE id = $1",
        ] {
            assert_total_refused(&format!("{state}: {change}"), run(pg, change, booking).await);
        }
        let renumbered = "UPDATE booking_seats SET seat_no = 9, label = 'A10' WHERE booking_id = $1";
        run(pg, renumbered, booking).await.expect("another seat for the same money");
        if state == "PAYMENT_PENDING" {
            continue;
        }
        // A partial cancellation changes both, in either order.
        let mut tx = pg.begin().await.expect("a transaction");
        for change in [
            "UPDATE bookings SET total_minor = 0, version = version + 1 WHERE id = $1",
            "DELETE FROM booking_seats WHERE booking_id = $1",
        ] {
            sqlx::query(change).bind(booking).execute(&mut *tx).await.expect("both are changed");
        }
        tx.commit().await.expect("total and lines match");
    }
    let booking = booking_of(pg, show, "SEATS_LOCKED", 200, true).await.expect("the booking is written");
    run(pg, ADD_PLACES, booking).await.expect("no payment has begun");
    run(pg, SUBMIT, booking).await.expect("the total matches");
    for change in [
        "UPDATE booking_places SET quantity = 3 WHERE booking_id = $1",
        "UPDATE booking_places SET price_minor = 1 WHERE booking_id = $1",
        "DELETE FROM booking_places WHERE booking_id = $1",
    ] {
        assert_total_refused(change, run(pg, change, booking).await);
    }
    // Before a payment starts, everything may change.
    run(pg, ADD_SEAT, other).await.expect("no payment has begun");
    run(pg, "DELETE FROM booking_seats WHERE booking_id = $1", other).await.expect("no payment has begun");
}

/// Two concurrent transactions, neither of which sees the other's write.
#[tokio::test(flavor = "multi_thread")]
async fn table_refuses_a_line_written_concurrently_with_the_payment() {
    let world = World::start(0, &[]).await;
    let pg = &world.pg;
    for line in [ADD_SEAT, ADD_PLACES, "DELETE FROM booking_seats WHERE booking_id = $1"] {
        // The line first: the transition waits for it, and reads it.
        let booking = booking_of(pg, world.show, "SEATS_LOCKED", 100, true).await.expect("the booking is written");
        let mut writer = pg.begin().await.expect("a transaction");
        sqlx::query(line).bind(booking).execute(&mut *writer).await.expect("no payment has begun");
        // Deleted lines are checked by deferred constraints.
        sqlx::query("SET CONSTRAINTS ALL IMMEDIATE").execute(&mut *writer).await.expect("no payment has begun");
        let payer = pg.clone();
        let step = tokio::spawn(async move { run(&payer, SUBMIT, booking).await });
        wait_for_lock_waiters(&world, 1).await;
        writer.commit().await.expect("the line is written");
        assert_total_refused(&format!("after {line}"), step.await.expect("the task ends"));
        // The transition first: the line waits for it.
        let booking = booking_of(pg, world.show, "SEATS_LOCKED", 100, true).await.expect("the booking is written");
        let mut payer = pg.begin().await.expect("a transaction");
        sqlx::query(SUBMIT).bind(booking).execute(&mut *payer).await.expect("the total matches");
        let writer = pg.clone();
        let written = tokio::spawn(async move { run(&writer, line, booking).await });
        wait_for_lock_waiters(&world, 1).await;
        payer.commit().await.expect("the transition is committed");
        assert_total_refused(&format!("{line}, after the step"), written.await.expect("the task ends"));
    }
    // They remain in the database, and are unpaid.
    world.end_with_known_findings(&["SEATS_LOCKED, costs"]).await;
}
