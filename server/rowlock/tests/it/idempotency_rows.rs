//! Rows of idempotency keys: updates and deletion.

use http::idempotency::{Answer, IdempotencyKey, Intent, add_answers, all_answered};
use platform::cte_batch::CteBatch;
use reqwest::StatusCode;
use serde_json::json;

use crate::world::World;

/// Rows of keys updated by this transaction, and how many of the updates were heap-only (no index entry).
async fn update_counts(tx: &mut sqlx::PgConnection) -> (i64, i64) {
    let counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'idempotency_keys'";
    sqlx::query_as(counts).fetch_one(tx).await.expect("Postgres counts")
}

#[tokio::test(flavor = "multi_thread")]
async fn storing_an_answer_is_a_heap_only_update() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now();
    let intents = ["one", "another"].map(|key| {
        let key = IdempotencyKey::of_form(key).expect("a key");
        Intent::new("ann", key, "POST /", &json!({}))
    });
    let mut tx = world.pg.begin().await.expect("a transaction");
    for intent in &intents {
        assert!(intent.begin(&mut tx, now).await.expect("the key is claimed").is_none());
    }
    tx.commit().await.expect("both keys are claimed");

    let answer = Answer::json(StatusCode::OK, &"a booking".repeat(120)).expect("an answer");
    let mut tx = world.pg.begin().await.expect("a transaction");
    let before = update_counts(&mut tx).await;
    intents[0].complete(&mut tx, &answer, now).await.expect("one answer is stored alone");
    let mut cte = CteBatch::default();
    let others = [(&intents[1], &answer)];
    add_answers(&mut cte, &others, now).expect("the other is stored in a batch");
    let outcomes = cte.run(&mut tx).await.expect("the batch is written");
    all_answered(&outcomes, &others).expect("the answer is stored");
    let after = update_counts(&mut tx).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 2), "updates, and heap-only updates");
    tx.commit().await.expect("both answers are committed");
    for intent in &intents {
        let replayed = intent.replay(&world.pg, now).await.expect("the key is known").expect("the answer is stored");
        assert_eq!(replayed.body(), answer.body());
    }
}

/// An expired key; a key that the previous version claimed again without knowing `purge_at`; and one of that version
/// that expired at once.
const KEYS_OF_THREE_TIMES: &str = "
    INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at, purge_at) VALUES
        ('ann', 'over', '', 'pending', now() - interval '2 days', now() - interval '1 day'),
        ('ann', 'anew', '', 'pending', now() + interval '5 minutes', now() - interval '1 day');
    INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at) VALUES
        ('ann', 'of before', '', 'pending', now() - interval '1 second')";

#[tokio::test(flavor = "multi_thread")]
async fn expired_key_is_deleted_after_its_purge_time() {
    let mut world = World::start(0, &[]).await;
    sqlx::raw_sql(KEYS_OF_THREE_TIMES).execute(&world.pg).await.expect("the keys are written");
    world.add_server(&[]).await;
    let over = "SELECT count(*) FROM idempotency_keys WHERE key = 'over'";
    world.wait_for_count("expired keys are deleted", over, 0).await;
    assert_eq!(world.count("SELECT count(*) FROM idempotency_keys").await, 2, "what is of use, and what may wait");
}
