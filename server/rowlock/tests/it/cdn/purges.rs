//! The CDN is told what changed: once, once more when nothing stale is left, and by another if one dies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TOKEN, tags, telling};
use crate::checking::{check, state};
use crate::organiser::{HERE, done, organiser};
use crate::systems::receiver::{Manner, Receiver};
use crate::world::{World, until};

/// A page may be stale for this long after the first purge: a standby's lag, what is shared, and the way.
const NOTHING_IS_LEFT_AFTER: Duration = Duration::from_secs(12);

/// Tags of a change of the world's show.
fn of_show(world: &World) -> Vec<String> {
    let show = format!("show-{}", world.show);
    ["city-lisbon", "film-tide", "lists", &show, "theatre-aurora"].map(ToOwned::to_owned).to_vec()
}

/// An organiser pauses the sale.
async fn pauses(world: &World) {
    let mut olga = organiser(world).await;
    let (_, show) = olga.get(&format!("{HERE}/programme/{}", world.show)).await;
    let mut terms: Value = show["terms"].clone();
    terms["sales"] = json!("paused");
    let wish = json!({ "terms": terms, "version": show["version"], "reason": "As agreed." });
    done(&mut olga, &format!("/programme/{}/terms", world.show), wish).await;
}

async fn sets_hold(world: &World, hold_ms: i64) {
    let changed = sqlx::query("UPDATE shows SET hold_ms = $1").bind(hold_ms).execute(&world.pg).await;
    changed.expect("the show is changed");
}

async fn is_all_told(world: &World) {
    until("all is told", || async { world.count("SELECT count(*) FROM cdn_purges").await == 0 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_told_once_with_the_token_and_once_more_when_nothing_of_before_is_left() {
    let receiver = Receiver::start().await;
    let world = World::start(2, &telling(&receiver.url())).await;
    pauses(&world).await;
    let first = receiver.hears(1).await.remove(0);
    let heard = Instant::now();
    assert_eq!((first.path.as_str(), first.header("content-type")), ("/hooks", "application/json"));
    assert_eq!(first.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(first.json(), json!({ "tags": of_show(&world) }));
    assert_eq!(first.header("surrogate-key"), of_show(&world).join(" "), "for those that read no bodies");
    receiver.hears(2).await;
    let pause = heard.elapsed();
    assert!(pause > NOTHING_IS_LEFT_AFTER - Duration::from_secs(1), "again after {pause:?}, which may be too soon");
    is_all_told(&world).await;
    assert_eq!(tags(&receiver), [of_show(&world), of_show(&world)], "by one of two servers");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wanted_twice_is_told_in_one_call_and_a_dead_servers_changes_by_another() {
    let receiver = Receiver::start().await;
    let mut world = World::start(1, &telling(&receiver.url())).await;
    world.kill(0).await;
    // Committed, and nobody told the CDN.
    sets_hold(&world, 60_000).await;
    sets_hold(&world, 61_000).await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 10);
    world.add_server(&[]).await;
    receiver.hears(1).await;
    until("both wait for the second round", || async {
        world.count("SELECT count(*) FROM cdn_purges WHERE round = 2").await == 10
    })
    .await;
    is_all_told(&world).await;
    assert_eq!(tags(&receiver), [of_show(&world), of_show(&world)]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_while_it_tells_is_followed_by_another() {
    let receiver = Receiver::start().await;
    let mut world = World::start(1, &telling(&receiver.url())).await;
    receiver.answers(&[Manner::Silence]);
    pauses(&world).await;
    receiver.hears(1).await;
    world.kill(0).await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges WHERE round = 1").await, 5, "nobody said that it is done");
    world.add_server(&[]).await;
    receiver.hears(2).await;
    assert_eq!(tags(&receiver), [of_show(&world), of_show(&world)]);
    until("it is noted", || async { world.count("SELECT count(*) FROM cdn_purges WHERE round = 2").await == 5 }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cdn_that_is_down_is_told_when_it_is_back_and_no_redirect_is_followed() {
    let receiver = Receiver::start().await;
    let world = World::start(1, &telling(&receiver.url())).await;
    receiver.answers(&[Manner::Status(503), Manner::Redirect, Manner::Status(429)]);
    pauses(&world).await;
    let told = receiver.hears(4).await;
    assert!(told.iter().all(|call| call.path == "/hooks"), "the token is for nobody else");
    until("it is done", || async { world.count("SELECT count(*) FROM cdn_purges WHERE round = 2").await == 5 }).await;
    assert_eq!(tags(&receiver), vec![of_show(&world); 4]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cdn_never_takes_waits_for_a_person_and_is_said() {
    let receiver = Receiver::start().await;
    let world = World::start(1, &telling(&receiver.url())).await;
    let flags = ["--public-url", world.servers[0].url.as_str()];
    let (good, report) = check(&world, &flags).await;
    assert!(good && state(&report, "cdn purge") == "ok", "{report:#}");
    receiver.always(401);
    sets_hold(&world, 60_000).await;
    until("its last try comes and goes", || async {
        // As after half an hour; whatever is under way meanwhile is noted for the try it was.
        let last = "UPDATE cdn_purges SET tries = 29, run_after = now() WHERE parked_why IS NULL AND tries < 29";
        sqlx::query(last).execute(&world.pg).await.expect("it is late");
        world.count("SELECT count(*) FROM cdn_purges WHERE parked_why LIKE '%401%'").await == 5
    })
    .await;
    let (good, report) = check(&world, &flags).await;
    assert!(good && state(&report, "cdn purge") == "warning", "every seat can be sold: {report:#}");
    let (good, said) = world.command(&["parked"]).await;
    assert!(good && said.contains("purge of lists") && said.contains("5 wait for a person"), "{said}");

    receiver.always(204);
    let (good, said) = world.command(&["parked", "retry-purges"]).await;
    assert!(good && said.contains("5 tags"), "{said}");
    until("they are told", || async { world.count("SELECT count(*) FROM cdn_purges WHERE round = 2").await == 5 })
        .await;
    let (_, report) = check(&world, &flags).await;
    assert_eq!(state(&report, "cdn purge"), "ok", "{report:#}");
    world.end().await;
}
