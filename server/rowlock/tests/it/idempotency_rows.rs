//! Rows of keys: what storing an answer writes, and when they go.

use http::idempotency::{Answer, IdempotencyKey, Intent, add_answers, all_answered};
use platform::together::Together;
use reqwest::StatusCode;
use serde_json::json;

use crate::world::{World, until};

/// Rows of keys that this transaction has updated, and those of them that needed no new entry in any index.
async fn updated(tx: &mut sqlx::PgConnection) -> (i64, i64) {
    let counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'idempotency_keys'";
    sqlx::query_as(counts).fetch_one(tx).await.expect("Postgres counts")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_stored_without_a_new_entry_in_any_index() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now();
    let intents = ["one", "another"].map(|key| {
        let key = IdempotencyKey::of_form(key).expect("a key");
        Intent::new("ann", key, "POST /", &json!({}))
    });
    let mut tx = world.pg.begin().await.expect("a transaction");
    for intent in &intents {
        assert!(intent.begin(&mut tx, now).await.expect("it is claimed").is_none());
    }
    tx.commit().await.expect("both are claimed");

    let answer = Answer::json(StatusCode::OK, &"a booking".repeat(120)).expect("an answer");
    let mut tx = world.pg.begin().await.expect("a transaction");
    let before = updated(&mut tx).await;
    intents[0].complete(&mut tx, &answer, now).await.expect("one is answered by itself");
    let mut together = Together::default();
    let others = [(&intents[1], &answer)];
    add_answers(&mut together, &others, now).expect("the other with what else is written");
    let told = together.run(&mut tx).await.expect("it is written");
    all_answered(&told, &others).expect("it is answered");
    let after = updated(&mut tx).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 2), "rows updated, and of them on their page");
    tx.commit().await.expect("both are answered");
    for intent in &intents {
        let replayed = intent.replay(&world.pg, now).await.expect("it is known").expect("it is answered");
        assert_eq!(replayed.body(), answer.body());
    }
    world.end().await;
}

/// A key that is over; one that was claimed anew by the version before, which knows of no `purge_at`; one of that version's
/// that ran out at once.
const KEYS_OF_THREE_TIMES: &str = "
    INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at, purge_at) VALUES
        ('ann', 'over', '', 'pending', now() - interval '2 days', now() - interval '1 day'),
        ('ann', 'anew', '', 'pending', now() + interval '5 minutes', now() - interval '1 day');
    INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at) VALUES
        ('ann', 'of before', '', 'pending', now() - interval '1 second')";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_when_it_is_of_no_use_and_its_time_has_come() {
    let mut world = World::start(0, &[]).await;
    sqlx::raw_sql(KEYS_OF_THREE_TIMES).execute(&world.pg).await.expect("they are written");
    world.add_server(&[]).await;
    let over = "SELECT count(*) FROM idempotency_keys WHERE key = 'over'";
    until("what is over is gone", || async { world.count(over).await == 0 }).await;
    assert_eq!(world.count("SELECT count(*) FROM idempotency_keys").await, 2, "what is of use, and what may wait");
    world.end().await;
}
