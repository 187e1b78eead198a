//! What the code refuses, SQL refuses too.

use domain::booking::{ALL_STATES, may_move};
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{World, text};

/// A booking in that state, written past the code.
async fn booking_in(pg: &PgPool, show: Uuid, state: &str) -> Uuid {
    let id = server::ids::new_id();
    sqlx::query(
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                               buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
         VALUES ($1, $1::text, $2, 'nobody', $1, 1, $3, 'NONE', 0, 'EUR', '', '', '', '', 'infinity', now(), now())",
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
