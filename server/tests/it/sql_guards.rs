//! What the code refuses, SQL refuses too.

use domain::booking::{ALL_STATES, may_move};
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{World, text};

/// A booking in that state, written past the code.
pub async fn booking_in(pg: &PgPool, show: Uuid, state: &str) -> Uuid {
    let id = server::ids::new_id();
    sqlx::query(
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                               buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
         VALUES ($1, $1::text, $2, 'nobody', $1, 1, $3, 'NONE', 0, 'EUR', '', '', '', '', now() + interval '1 day', now(), now())",
    )
    .bind(id)
    .bind(show)
    .bind(state)
    .execute(pg)
    .await
    .expect("the row is written");
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn every_move_the_machine_refuses_is_refused_by_the_table_as_well() {
    let world = World::start(0, &[]).await;
    for from in ALL_STATES {
        for to in ALL_STATES {
            let id = booking_in(&world.pg, world.show, from.as_str()).await;
            let moved = sqlx::query("UPDATE bookings SET state = $2, version = version + 1 WHERE id = $1")
                .bind(id)
                .bind(to.as_str())
                .execute(&world.pg)
                .await;
            assert_eq!(moved.is_ok(), from == to || may_move(from, to), "{from:?} to {to:?}: {moved:?}");
        }
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_skips_a_version_is_refused() {
    let world = World::start(0, &[]).await;
    let id = booking_in(&world.pg, world.show, "CREATED").await;
    for version in [1, 3] {
        let moved = sqlx::query("UPDATE bookings SET version = $2 WHERE id = $1").bind(id).bind(version);
        assert!(moved.execute(&world.pg).await.is_err(), "version {version}");
    }
    world.end().await;
}

/// A pending payment that succeeds sells its seats in the same breath: one write, two steps.
#[tokio::test(flavor = "multi_thread")]
async fn two_steps_in_one_write_are_those_of_a_payment_that_sells_and_no_others() {
    let world = World::start(0, &[]).await;
    for from in ALL_STATES {
        for to in ALL_STATES {
            let id = booking_in(&world.pg, world.show, from.as_str()).await;
            let moved = sqlx::query("UPDATE bookings SET state = $2, version = version + 2 WHERE id = $1")
                .bind(id)
                .bind(to.as_str())
                .execute(&world.pg)
                .await;
            let is_a_sale = (from.as_str(), to.as_str()) == ("PAYMENT_PENDING", "CONFIRMED");
            assert_eq!(moved.is_ok(), is_a_sale, "{from:?} to {to:?}: {moved:?}");
        }
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookings_story_cannot_be_rewritten_and_a_seat_has_one_claim() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[1]).await;
    let (_, booking) = ann.book(&hold).await;
    ann.pay(&booking, Some("tok_paid")).await;
    for statement in ["UPDATE booking_events SET reason = 'another'", "DELETE FROM booking_events"] {
        assert!(sqlx::query(statement).execute(&world.pg).await.is_err(), "{statement}");
    }
    let twice =
        "INSERT INTO seat_claims SELECT show_id, seat_no, booking_id, fence + 1, state, expires_at FROM seat_claims";
    assert!(sqlx::query(twice).execute(&world.pg).await.is_err());
    assert_eq!(text(&ann.booking(&booking).await["state"]), "CONFIRMED");
    world.end().await;
}

/// A payment of that many cents for a booking, written past the code.
pub async fn pay_for(pg: &PgPool, booking: Uuid, cents: i64) {
    let paid = sqlx::query(
        "INSERT INTO payments (booking_id, gateway, state, amount_minor, currency, updated_at)
         VALUES ($1, 'simulator', 'succeeded', $2, 'EUR', now())",
    );
    paid.bind(booking).bind(cents).execute(pg).await.expect("the payment is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_and_fees_never_exceed_the_charge_and_are_settled_once() {
    let world = World::start(0, &[]).await;
    let refund = async |booking: Uuid, number: i32, amount: i64, fee: i64| {
        sqlx::query(
            "INSERT INTO refunds (booking_id, number, amount_minor, fee_minor, state, requested_at)
             VALUES ($1, $2, $3, $4, 'requested', now())",
        )
        .bind(booking)
        .bind(number)
        .bind(amount)
        .bind(fee)
        .execute(&world.pg)
        .await
    };
    let unpaid = booking_in(&world.pg, world.show, "CONFIRMED").await;
    assert!(refund(unpaid, 0, 1, 0).await.is_err(), "nothing was charged");
    let booking = booking_in(&world.pg, world.show, "CONFIRMED").await;
    pay_for(&world.pg, booking, 100).await;
    refund(booking, 1, 36, 4).await.expect("within the charge");
    assert!(refund(booking, 1, 1, 0).await.is_err(), "one refund a number");
    assert!(refund(booking, 2, 60, 1).await.is_err(), "one cent too much");
    refund(booking, 2, 60, 0).await.expect("just the charge");
    assert!(refund(booking, 3, 1, 0).await.is_err(), "nothing is left");
    let settle = "UPDATE refunds SET state = 'settled', settled_at = now() WHERE booking_id = $1 AND number = 1";
    sqlx::query(settle).bind(booking).execute(&world.pg).await.expect("it is settled");
    for change in [
        "UPDATE refunds SET state = 'requested', settled_at = NULL WHERE booking_id = $1 AND number = 1",
        "UPDATE refunds SET amount_minor = 1 WHERE booking_id = $1 AND number = 2",
        "UPDATE refunds SET state = 'settled' WHERE booking_id = $1 AND number = 2",
        "DELETE FROM refunds WHERE booking_id = $1 AND number = 2",
    ] {
        assert!(sqlx::query(change).bind(booking).execute(&world.pg).await.is_err(), "{change}");
    }
    // Money that pays for another booking cannot go back for this one as well.
    let (late, fresh) =
        (booking_in(&world.pg, world.show, "EXPIRED").await, booking_in(&world.pg, world.show, "CONFIRMED").await);
    pay_for(&world.pg, late, 100).await;
    let moved = "UPDATE payments SET moved_to = $2 WHERE booking_id = $1";
    sqlx::query(moved).bind(late).bind(fresh).execute(&world.pg).await.expect("it moves");
    assert!(refund(late, 0, 1, 0).await.is_err());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_begins_to_pay_for_a_show_that_was_called_off() {
    let world = World::start(0, &[]).await;
    let (held, sold) =
        (booking_in(&world.pg, world.show, "SEATS_LOCKED").await, booking_in(&world.pg, world.show, "CONFIRMED").await);
    sqlx::query("UPDATE shows SET called_off = true").execute(&world.pg).await.expect("it is called off");
    let go = "UPDATE bookings SET state = $2, version = version + 1 WHERE id = $1";
    let refused = sqlx::query(go).bind(held).bind("PAYMENT_PENDING").execute(&world.pg).await.expect_err("refused");
    assert_eq!(refused.as_database_error().and_then(|error| error.code()).as_deref(), Some("RL001"));
    for booking in [held, sold] {
        sqlx::query(go).bind(booking).bind("CANCELLED").execute(&world.pg).await.expect("what is there can be undone");
    }
    world.end().await;
}
