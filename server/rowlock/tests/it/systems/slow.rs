//! Other systems that hang: they keep nobody else waiting.

use serde_json::json;

use super::receiver::{Manner, Receiver};
use super::told::endpoint;
use crate::accounts::{Browser, another_theatre, grant};
use crate::reports::staff;
use crate::world::{World, until};

/// Servers that may tell a server beside them, and wait for its answer for longer than any of these tests takes.
const PATIENT: [(&str, &str); 3] =
    [("WEBHOOKS_MAY_BE_PRIVATE", "true"), ("WEBHOOK_FIRST_PAUSE_MS", "1"), ("WEBHOOK_DEADLINE_MS", "15000")];
/// Of sixteen messages side by side, those of one endpoint and of one theatre.
const OF_ENDPOINT: usize = 4;
const OF_THEATRE: usize = 8;

/// Something happens in a theatre, so many times, long after what happened before was due.
async fn happens(world: &World, theatre: &str, times: usize) {
    let told = "SELECT tell_endpoints($1, 'show.cancelled', 'a show', '{}', now()) FROM generate_series(1, $2)";
    sqlx::query(told).bind(theatre).bind(times as i64).execute(&world.pg).await.expect("it is told");
}

/// A manager of the Aurora and of the Rialto, and what listens in the second.
async fn two_theatres(world: &World) -> (Browser, Receiver) {
    another_theatre(world).await;
    let mut max = staff(world, "max@example.org", "manager").await;
    grant(world, "max@example.org", "rialto", "manager").await;
    let quick = Receiver::start().await;
    let wish = json!({ "url": quick.url(), "events": ["show.cancelled"], "reason": "The till next door." });
    let (status, made) = max.post("/api/v1/theatres/rialto/webhooks", wish).await;
    assert!(status.is_success(), "{made}");
    (max, quick)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_one_theatres_endpoints_hang_another_theatre_is_told_at_once() {
    let world = World::start(1, &PATIENT).await;
    let (mut max, quick) = two_theatres(&world).await;
    let mut slow = Vec::new();
    for _ in 0..5 {
        let receiver = Receiver::start().await;
        receiver.answers(&[Manner::Silence; 20]);
        endpoint(&mut max, &receiver.url()).await;
        slow.push(receiver);
    }
    let hanging = || slow.iter().map(|receiver| receiver.told().len()).collect::<Vec<_>>();
    // Enough to fill all there is twice over, and all of it due before the other theatre's.
    happens(&world, "aurora", 10).await;
    until("one theatre has its share", || async { hanging().iter().sum::<usize>() == OF_THEATRE }).await;
    happens(&world, "rialto", 12).await;
    quick.hears(12).await;
    let hanging = hanging();
    assert_eq!(hanging.iter().sum::<usize>(), OF_THEATRE, "no more than its share: {hanging:?}");
    assert!(hanging.iter().all(|count| *count <= OF_ENDPOINT), "{hanging:?}");
    until("all of the other's is delivered", || async {
        let delivered = "SELECT count(*) FROM webhook_deliveries delivery JOIN webhook_messages message
                         ON message.id = delivery.message_id
                         WHERE message.theatre_id = 'rialto' AND delivery.state = 'delivered'";
        world.count(delivered).await == 12
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_failed_last_is_told_one_thing_at_a_time_until_it_is_back() {
    let world = World::start(1, &PATIENT).await;
    let (mut max, quick) = two_theatres(&world).await;
    let failing = Receiver::start().await;
    failing.answers(&[Manner::Status(500), Manner::Silence]);
    endpoint(&mut max, &failing.url()).await;
    happens(&world, "aurora", 1).await;
    // The first try fails, the second hangs.
    failing.hears(2).await;
    happens(&world, "aurora", 6).await;
    // Twice others are told what happened since: it was looked for what is due meanwhile.
    for times in [3, 6] {
        happens(&world, "rialto", 3).await;
        quick.hears(times).await;
    }
    assert_eq!(failing.told().len(), 2, "one at a time");
    world.end().await;
}
