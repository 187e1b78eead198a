//! Hanging endpoints do not delay others.

use serde_json::json;

use super::deliveries::create_endpoint;
use super::receiver::{Receiver, ReceiverReply};
use crate::accounts::{Browser, another_theatre, grant};
use crate::reports::staff;
use crate::world::{World, wait_until};

/// Servers that may deliver to private addresses, with a timeout longer than any of these tests.
const LONG_TIMEOUT: [(&str, &str); 3] =
    [("WEBHOOKS_MAY_BE_PRIVATE", "true"), ("WEBHOOK_FIRST_PAUSE_MS", "1"), ("WEBHOOK_DEADLINE_MS", "15000")];
/// Of sixteen concurrent deliveries, the shares of one endpoint and of one theatre.
const OF_ENDPOINT: usize = 4;
const OF_THEATRE: usize = 8;

/// Records this many events of a theatre, due after all earlier ones.
async fn record_events(world: &World, theatre: &str, times: usize) {
    let deliveries = "SELECT tell_endpoints($1, 'show.cancelled', 'a show', '{}', now()) FROM generate_series(1, $2)";
    sqlx::query(deliveries).bind(theatre).bind(times as i64).execute(&world.pg).await.expect("the events are recorded");
}

/// A manager of the Aurora and the Rialto, and the Rialto's endpoint.
async fn two_theatres(world: &World) -> (Browser, Receiver) {
    another_theatre(world).await;
    let mut max = staff(world, "max@example.org", "manager").await;
    grant(world, "max@example.org", "rialto", "manager").await;
    let quick = Receiver::start().await;
    let request_body = json!({ "url": quick.url(), "events": ["show.cancelled"], "reason": "The till next door." });
    let (status, made) = max.post("/api/v1/theatres/rialto/webhooks", request_body).await;
    assert!(status.is_success(), "{made}");
    (max, quick)
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoints_of_one_theatre_do_not_delay_another_theatre() {
    let world = World::start(1, &LONG_TIMEOUT).await;
    let (mut max, quick) = two_theatres(&world).await;
    let mut slow = Vec::new();
    for _ in 0..5 {
        let receiver = Receiver::start().await;
        receiver.reply_with(&[ReceiverReply::Silence; 20]);
        create_endpoint(&mut max, &receiver.url()).await;
        slow.push(receiver);
    }
    let hanging = || slow.iter().map(|receiver| receiver.deliveries().len()).collect::<Vec<_>>();
    // Enough for twice the capacity, and all due before the other theatre's.
    record_events(&world, "aurora", 10).await;
    wait_until("one theatre has its share", || async { hanging().iter().sum::<usize>() == OF_THEATRE }).await;
    record_events(&world, "rialto", 12).await;
    quick.wait_for_deliveries(12).await;
    let hanging = hanging();
    assert_eq!(hanging.iter().sum::<usize>(), OF_THEATRE, "no more than its share: {hanging:?}");
    assert!(hanging.iter().all(|count| *count <= OF_ENDPOINT), "{hanging:?}");
    wait_until("all of the other theatre's events are delivered", || async {
        let delivered = "SELECT count(*) FROM webhook_deliveries delivery JOIN webhook_messages message
                         ON message.id = delivery.message_id
                         WHERE message.theatre_id = 'rialto' AND delivery.state = 'delivered'";
        world.count(delivered).await == 12
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_endpoint_gets_one_delivery_at_a_time_until_it_recovers() {
    let world = World::start(1, &LONG_TIMEOUT).await;
    let (mut max, quick) = two_theatres(&world).await;
    let failing = Receiver::start().await;
    failing.reply_with(&[ReceiverReply::Status(500), ReceiverReply::Silence]);
    create_endpoint(&mut max, &failing.url()).await;
    record_events(&world, "aurora", 1).await;
    // The first attempt fails, and the second hangs.
    failing.wait_for_deliveries(2).await;
    record_events(&world, "aurora", 6).await;
    // Two rounds deliver to others meanwhile, so the failing endpoint was considered too.
    for times in [3, 6] {
        record_events(&world, "rialto", 3).await;
        quick.wait_for_deliveries(times).await;
    }
    assert_eq!(failing.deliveries().len(), 2, "one at a time");
}
