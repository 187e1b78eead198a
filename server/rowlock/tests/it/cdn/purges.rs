//! Purges of changed content: one request, a second one when no stale read is left, and failover to another server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TOKEN, cdn_settings, tags};
use crate::check_command::{check, state};
use crate::organiser::{API, organiser, post_ok};
use crate::systems::receiver::{Receiver, ReceiverReply};
use crate::world::{World, wait_until};

/// A page may be stale for this long after the first purge: replication lag, shared caches, and latency.
const STALE_READS_END_AFTER: Duration = Duration::from_secs(12);

/// Tags of a change of the world's show.
fn show_tags(world: &World) -> Vec<String> {
    let show = format!("show-{}", world.show);
    ["city-lisbon", "film-tide", "lists", &show, "theatre-aurora"].map(ToOwned::to_owned).to_vec()
}

/// Pauses the sale as an organiser.
async fn pause_sales(world: &World) {
    let mut olga = organiser(world).await;
    let (_, show) = olga.get(&format!("{API}/programme/{}", world.show)).await;
    let mut terms: Value = show["terms"].clone();
    terms["sales"] = json!("paused");
    let request_body = json!({ "terms": terms, "version": show["version"], "reason": "As agreed." });
    post_ok(&mut olga, &format!("/programme/{}/terms", world.show), request_body).await;
}

async fn set_hold_ms(world: &World, hold_ms: i64) {
    let changed = sqlx::query("UPDATE shows SET hold_ms = $1").bind(hold_ms).execute(&world.pg).await;
    changed.expect("the show is changed");
}

async fn wait_until_purged(world: &World) {
    world.wait_for_count("no purge is pending", "SELECT count(*) FROM cdn_purges", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_is_purged_once_with_the_token_and_again_after_stale_reads_end() {
    let receiver = Receiver::start().await;
    let world = World::start(2, &cdn_settings(&receiver.url())).await;
    pause_sales(&world).await;
    let first = receiver.wait_for_deliveries(1).await.remove(0);
    let heard = Instant::now();
    assert_eq!((first.path.as_str(), first.header("content-type")), ("/hooks", "application/json"));
    assert_eq!(first.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(first.json(), json!({ "tags": show_tags(&world) }));
    assert_eq!(first.header("surrogate-key"), show_tags(&world).join(" "), "for CDNs that read only headers");
    receiver.wait_for_deliveries(2).await;
    let pause = heard.elapsed();
    assert!(
        pause > STALE_READS_END_AFTER - Duration::from_secs(1),
        "the second purge came after {pause:?}, which may be too soon"
    );
    wait_until_purged(&world).await;
    assert_eq!(tags(&receiver), [show_tags(&world), show_tags(&world)], "only one of two servers purges");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_changes_share_a_purge_and_another_server_purges_for_a_dead_one() {
    let receiver = Receiver::start().await;
    let mut world = World::start(1, &cdn_settings(&receiver.url())).await;
    world.kill(0).await;
    // Committed, but no purge was sent.
    set_hold_ms(&world, 60_000).await;
    set_hold_ms(&world, 61_000).await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 10);
    world.add_server(&[]).await;
    receiver.wait_for_deliveries(1).await;
    world.wait_for_count("both wait for the second purge", "SELECT count(*) FROM cdn_purges WHERE round = 2", 10).await;
    wait_until_purged(&world).await;
    assert_eq!(tags(&receiver), [show_tags(&world), show_tags(&world)]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_dies_during_a_purge_is_replaced_by_another() {
    let receiver = Receiver::start().await;
    let mut world = World::start(1, &cdn_settings(&receiver.url())).await;
    receiver.reply_with(&[ReceiverReply::Silence]);
    pause_sales(&world).await;
    receiver.wait_for_deliveries(1).await;
    world.kill(0).await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges WHERE round = 1").await, 5, "no purge is marked done");
    world.add_server(&[]).await;
    receiver.wait_for_deliveries(2).await;
    assert_eq!(tags(&receiver), [show_tags(&world), show_tags(&world)]);
    world.wait_for_count("the attempt is recorded", "SELECT count(*) FROM cdn_purges WHERE round = 2", 5).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_cdn_is_retried_and_redirects_are_not_followed() {
    let receiver = Receiver::start().await;
    let world = World::start(1, &cdn_settings(&receiver.url())).await;
    receiver.reply_with(&[ReceiverReply::Status(503), ReceiverReply::Redirect, ReceiverReply::Status(429)]);
    pause_sales(&world).await;
    let calls = receiver.wait_for_deliveries(4).await;
    assert!(calls.iter().all(|call| call.path == "/hooks"), "the token is sent to no other URL");
    world.wait_for_count("the first purge is done", "SELECT count(*) FROM cdn_purges WHERE round = 2", 5).await;
    assert_eq!(tags(&receiver), vec![show_tags(&world); 4]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_purge_is_parked_and_reported() {
    let receiver = Receiver::start().await;
    let world = World::start(1, &cdn_settings(&receiver.url())).await;
    let flags = ["--public-url", world.servers[0].url.as_str()];
    let (good, report) = check(&world, &flags).await;
    assert!(good && state(&report, "cdn purge") == "ok", "{report:#}");
    receiver.always_reply(401);
    set_hold_ms(&world, 60_000).await;
    wait_until("the last attempt fails", || async {
        // As after half an hour of retries.
        let last = "UPDATE cdn_purges SET tries = 29, run_after = now() WHERE parked_why IS NULL AND tries < 29";
        world.execute(last).await;
        world.count("SELECT count(*) FROM cdn_purges WHERE parked_why LIKE '%401%'").await == 5
    })
    .await;
    let (good, report) = check(&world, &flags).await;
    assert!(good && state(&report, "cdn purge") == "warning", "sales are not affected: {report:#}");
    let (good, said) = world.command(&["parked"]).await;
    assert!(good && said.contains("purge of lists") && said.contains("5 wait for a person"), "{said}");

    receiver.always_reply(204);
    let (good, said) = world.command(&["parked", "retry-purges"]).await;
    assert!(good && said.contains("5 purges"), "{said}");
    world.wait_for_count("the purges are sent", "SELECT count(*) FROM cdn_purges WHERE round = 2", 5).await;
    let (_, report) = check(&world, &flags).await;
    assert_eq!(state(&report, "cdn purge"), "ok", "{report:#}");
    world.end().await;
}
