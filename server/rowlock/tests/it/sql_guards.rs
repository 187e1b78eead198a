//! Rules of the code that Postgres enforces as well.

use std::collections::BTreeSet;

use domain::VariantName;
use domain::api::door::Outcome;
use domain::booking::{BookingState, may_move};
use domain::fairness::{UnusualKind, UnusualSubject};
use domain::pricing::Format;
use domain::roles::Role;
use domain::till::{Means, TillEntryKind};
use platform::database::BindAll;
use sqlx::PgPool;
use sqlx::postgres::PgQueryResult;
use strum::VariantArray;

use crate::prelude::*;

pub async fn insert_booking(pg: &PgPool, show: Uuid, state: &str) -> Uuid {
    let id = platform::ids::new_id();
    insert(pg, show, state, id).await.expect("the row is written");
    id
}

async fn insert(pg: &PgPool, show: Uuid, state: &str, id: Uuid) -> sqlx::Result<PgQueryResult> {
    sqlx::query(
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                               buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
         VALUES ($1, $1::text, $2, 'no-owner', $1, 1, $3, 'NONE', 0, 'EUR', '', '', '', '', now() + interval '1 day', now(), now())",
    )
    .bind_all((id, show, state))
    .execute(pg)
    .await
}

fn names<T: VariantName + VariantArray>() -> BTreeSet<&'static str> {
    T::VARIANTS.iter().map(T::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_lists_exactly_the_values_of_its_enum() {
    let world = World::start(0, &[]).await;
    for (table, column, values) in [
        ("bookings", "state", names::<BookingState>()),
        ("staff_grants", "role", names::<Role>()),
        ("shows", "format", names::<Format>()),
        ("till_rows", "kind", names::<TillEntryKind>()),
        ("till_rows", "means", names::<Means>()),
        ("door_scans", "outcome", names::<Outcome>()),
        ("unusual_flags", "kind", names::<UnusualKind>()),
        ("unusual_flags", "subject", names::<UnusualSubject>()),
    ] {
        let sql = "SELECT pg_get_constraintdef(listed.oid) FROM pg_constraint listed
             JOIN pg_attribute named ON named.attrelid = listed.conrelid AND listed.conkey = ARRAY[named.attnum]
             WHERE listed.conrelid = $1::text::regclass AND named.attname = $2 AND listed.contype = 'c'";
        let checks: Vec<String> = world.values(sqlx::query_scalar(sql).bind(table).bind(column)).await;
        let listed: BTreeSet<&str> = checks.iter().flat_map(|check| check.split('\'').skip(1).step_by(2)).collect();
        assert_eq!(listed, values, "{table}.{column}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transitions_that_the_state_machine_refuses_are_refused_by_the_table() {
    let world = World::start(0, &[]).await;
    let listed = "SELECT from_state, to_state FROM booking_moves";
    let listed: Vec<(String, String)> = sqlx::query_as(listed).fetch_all(&world.pg).await.expect("moves are listed");
    for &from in BookingState::VARIANTS {
        for &to in BookingState::VARIANTS {
            let is_listed = listed.iter().any(|(a, b)| (a.as_str(), b.as_str()) == (from.as_str(), to.as_str()));
            assert_eq!(is_listed, may_move(from, to), "booking_moves: {from:?} to {to:?}");
            let id = insert_booking(&world.pg, world.show, from.as_str()).await;
            let sql = "UPDATE bookings SET state = $2, version = version + 1 WHERE id = $1";
            let moved = sqlx::query(sql).bind_all((id, to.as_str())).execute(&world.pg).await;
            let what = format!("{from:?} to {to:?}");
            if from == to || may_move(from, to) {
                moved.expect(&what);
            } else {
                assert_refused(&what, moved, CHECK_VIOLATION, "may not move from");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn update_that_skips_a_version_is_refused() {
    let world = World::start(0, &[]).await;
    let id = insert_booking(&world.pg, world.show, "CREATED").await;
    for version in [1, 3] {
        let moved = sqlx::query("UPDATE bookings SET version = $2 WHERE id = $1").bind(id).bind(version);
        let moved = moved.execute(&world.pg).await;
        assert_refused(&format!("version {version}"), moved, CHECK_VIOLATION, "must step from version 1 to 2");
    }
}

/// A pending payment that succeeds sells its seats in one update: two transitions.
#[tokio::test(flavor = "multi_thread")]
async fn one_update_may_make_only_the_two_transitions_of_a_sale() {
    let world = World::start(0, &[]).await;
    for &from in BookingState::VARIANTS {
        for &to in BookingState::VARIANTS {
            let id = insert_booking(&world.pg, world.show, from.as_str()).await;
            let sql = "UPDATE bookings SET state = $2, version = version + 2 WHERE id = $1";
            let moved = sqlx::query(sql).bind_all((id, to.as_str())).execute(&world.pg).await;
            let what = format!("{from:?} to {to:?}");
            if (from.as_str(), to.as_str()) == ("PAYMENT_PENDING", "CONFIRMED") {
                moved.expect(&what);
            } else {
                let is_a_move = from == to || may_move(from, to);
                let why = if is_a_move { "must step from version 1 to 2" } else { "may not move from" };
                assert_refused(&what, moved, CHECK_VIOLATION, why);
            }
        }
    }
}

/// Asserts that existing claims of a show cannot be inserted again, with any fence.
pub async fn assert_second_claims_are_refused(pg: &PgPool, show: Uuid) {
    // Claims are partitioned, and the key belongs to the partition.
    let part = "SELECT tableoid::regclass::text FROM seat_claims WHERE show_id = $1 LIMIT 1";
    let part: String = sqlx::query_scalar(part).bind(show).fetch_one(pg).await.expect("the show has claims");
    let twice = sqlx::query(
        "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
         SELECT show_id, seat_no, booking_id, fence + 1, state, expires_at FROM seat_claims WHERE show_id = $1",
    );
    let twice = twice.bind(show).execute(pg).await;
    assert_refused("a second claim", twice, UNIQUE_VIOLATION, &format!("{part}_pkey"));
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_events_are_immutable_and_a_seat_has_one_claim() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[1]).await;
    ann.pay(&booking, Some("tok_paid")).await;
    for statement in ["UPDATE booking_events SET reason = 'another'", "DELETE FROM booking_events"] {
        let changed = sqlx::query(statement).execute(&world.pg).await;
        assert_refused(statement, changed, CHECK_VIOLATION, "booking_events rows are immutable");
    }
    assert_second_claims_are_refused(&world.pg, world.show).await;
    assert_eq!(text(&ann.booking(&booking).await["state"]), "CONFIRMED");
}

pub async fn insert_payment(pg: &PgPool, booking: Uuid, cents: i64) {
    let paid = sqlx::query(
        "INSERT INTO payments (booking_id, gateway, state, amount_minor, currency, updated_at)
         VALUES ($1, 'simulator', 'succeeded', $2, 'EUR', now())",
    );
    paid.bind(booking).bind(cents).execute(pg).await.expect("the payment is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_and_fees_never_exceed_the_charge_and_settle_once() {
    let world = World::start(0, &[]).await;
    let refund = async |booking: Uuid, number: i32, amount: i64, fee: i64| {
        let sql = "INSERT INTO refunds (booking_id, number, amount_minor, fee_minor, state, requested_at)
                   VALUES ($1, $2, $3, $4, 'requested', now())";
        sqlx::query(sql).bind_all((booking, number, amount, fee)).execute(&world.pg).await
    };
    let unpaid = insert_booking(&world.pg, world.show, "CONFIRMED").await;
    let nothing = "would be 1 of a charge of 0";
    assert_refused("nothing was charged", refund(unpaid, 0, 1, 0).await, CHECK_VIOLATION, nothing);
    let booking = insert_booking(&world.pg, world.show, "CONFIRMED").await;
    insert_payment(&world.pg, booking, 100).await;
    refund(booking, 1, 36, 4).await.expect("within the charge");
    assert_refused("refund numbers are unique", refund(booking, 1, 1, 0).await, UNIQUE_VIOLATION, "refunds_pkey");
    let above = "would be 101 of a charge of 100";
    assert_refused("one cent too much", refund(booking, 2, 60, 1).await, CHECK_VIOLATION, above);
    refund(booking, 2, 60, 0).await.expect("just the charge");
    assert_refused("nothing is left", refund(booking, 3, 1, 0).await, CHECK_VIOLATION, above);
    let settle = "UPDATE refunds SET state = 'settled', settled_at = now() WHERE booking_id = $1 AND number = 1";
    world.run(sqlx::query(settle).bind(booking)).await;
    let stays = "is not to be changed";
    for (change, why) in [
        ("UPDATE refunds SET state = 'requested', settled_at = NULL WHERE booking_id = $1 AND number = 1", stays),
        ("UPDATE refunds SET amount_minor = 1 WHERE booking_id = $1 AND number = 2", stays),
        ("UPDATE refunds SET state = 'settled' WHERE booking_id = $1 AND number = 2", "refunds_check"),
        ("DELETE FROM refunds WHERE booking_id = $1 AND number = 2", stays),
    ] {
        let changed = sqlx::query(change).bind(booking).execute(&world.pg).await;
        assert_refused(change, changed, CHECK_VIOLATION, why);
    }
    // Money that pays for another booking cannot be refunded for this one.
    let (late, fresh) = (
        insert_booking(&world.pg, world.show, "EXPIRED").await,
        insert_booking(&world.pg, world.show, "CONFIRMED").await,
    );
    insert_payment(&world.pg, late, 100).await;
    let moved = "UPDATE payments SET moved_to = $2 WHERE booking_id = $1";
    world.run(sqlx::query(moved).bind(late).bind(fresh)).await;
    assert_refused("the money is moved", refund(late, 0, 1, 0).await, CHECK_VIOLATION, nothing);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_of_a_cancelled_show_is_refused_by_the_table() {
    let world = World::start(0, &[]).await;
    let (held, sold) = (
        insert_booking(&world.pg, world.show, "SEATS_LOCKED").await,
        insert_booking(&world.pg, world.show, "CONFIRMED").await,
    );
    world.execute("UPDATE shows SET called_off = true").await;
    let go = "UPDATE bookings SET state = $2, version = version + 1 WHERE id = $1";
    let paid = sqlx::query(go).bind(held).bind("PAYMENT_PENDING").execute(&world.pg).await;
    assert_refused("the show is cancelled", paid, "RL001", "was called off");
    let begun = insert(&world.pg, world.show, "PAYMENT_PENDING", platform::ids::new_id()).await;
    assert_refused("a booking with a payment is refused too", begun, "RL001", "was called off");
    for booking in [held, sold] {
        world.run(sqlx::query(go).bind(booking).bind("CANCELLED")).await;
    }
}
