//! A charge that reaches its gateway after the payment was voided as unknown: it is voided again, and a charge is a
//! late payment. No webhook arrives in these tests.

use futures::future::join_all;
use simulator::payment::Status;
use uuid::Uuid;

use crate::buyer::Buyer;
use crate::faults::gateway_proxy::Availability;
use crate::reconciler::WebhookOutage;
use crate::replicas::Replica;
use crate::world::wait_until;

/// Expired bookings whose charge never reached the gateway: it answered their voids with "unknown".
async fn expire_with_unknown_voids(outage: &WebhookOutage, seats: &[u32]) -> Vec<(Buyer, Uuid)> {
    let mut people = Vec::new();
    for seat in seats {
        people.push(outage.check_out(*seat).await);
    }
    outage.gateway.set_availability(Availability::Down);
    for (buyer, booking) in &people {
        // The server's answer does not matter here.
        let _ = buyer.pay(*booking, Some("tok_paid")).await;
    }
    let ids: Vec<Uuid> = people.iter().map(|(_, booking)| *booking).collect();
    outage
        .run_statement(&ids, "UPDATE outbox SET run_after = now() + interval '1 hour' WHERE booking_id = ANY($1)")
        .await;
    outage.expire_bookings(&ids).await;
    outage.gateway.set_availability(Availability::Up);
    outage.age_payments(&ids).await;
    wait_until("the bookings have expired", || async {
        outage.world.count("SELECT count(*) FROM bookings WHERE state = 'EXPIRED'").await == ids.len() as i64
    })
    .await;
    outage.run_statement(&ids, "UPDATE outbox SET run_after = now() WHERE booking_id = ANY($1)").await;
    for person in &people {
        outage.wait_for_state(person, "EXPIRED", "FAILED").await;
    }
    outage.world.wait_for_empty_outbox().await;
    let planned = "SELECT count(*) FROM unknown_voids WHERE checks = 0 AND check_at = since + interval '1 minute'";
    assert_eq!(outage.world.count(planned).await, ids.len() as i64, "the next void is in a minute");
    people
}

/// The charge of a booking reaches the gateway after all; without a card it waits for its payer.
fn charge_late(outage: &WebhookOutage, booking: Uuid, card: Option<&str>) {
    outage.gateway.open_unrecorded_payment(&booking.to_string(), &format!("pay:{booking}"), card);
}

fn payment_status(outage: &WebhookOutage, booking: Uuid) -> Status {
    outage.gateway.simulator.ledger.get_by_key(&format!("pay:{booking}")).expect("a payment").status
}

/// Moves time to the next check of these payments.
async fn make_checks_due(outage: &WebhookOutage, bookings: &[Uuid]) {
    let later =
        "UPDATE unknown_voids SET since = since - (check_at - now()), check_at = now() WHERE booking_id = ANY($1)";
    outage.run_statement(bookings, later).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn charge_after_its_void_is_a_late_payment_and_a_pending_one_is_voided() {
    let outage = WebhookOutage::start(2).await;
    let people = expire_with_unknown_voids(&outage, &[0, 1, 2]).await;
    let [placed, returned, stopped] = [people[0].1, people[1].1, people[2].1];
    // Its seat is sold by then: the money is refunded.
    outage.check_out_and_pay(1, Some("tok_paid")).await;
    charge_late(&outage, placed, Some("no_answer_paid"));
    charge_late(&outage, returned, Some("paid"));
    charge_late(&outage, stopped, None);
    wait_until("the bank has approved", || async { payment_status(&outage, placed) == Status::Succeeded }).await;
    assert_eq!(outage.world.count("SELECT count(*) FROM bookings WHERE money <> 'FAILED'").await, 1, "no news arrives");
    make_checks_due(&outage, &[placed, returned, stopped]).await;
    outage.wait_for_state(&people[0], "EXPIRED", "MOVED").await;
    outage.wait_for_state(&people[1], "EXPIRED", "REFUNDED").await;
    outage.world.wait_for_count("no check is left", "SELECT count(*) FROM unknown_voids", 0).await;
    assert_eq!(payment_status(&outage, stopped), Status::Voided);
    outage.wait_for_state(&people[2], "EXPIRED", "FAILED").await;
    assert_eq!(outage.world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 2);
    outage.wait_until_balanced().await;
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_payment_is_voided_four_more_times_by_one_replica_even_after_a_restart() {
    let outage = WebhookOutage::start(2).await;
    let people = expire_with_unknown_voids(&outage, &[5]).await;
    let booking = people[0].1;
    let planned = [
        "SELECT count(*) FROM unknown_voids
         WHERE checks = 1 AND check_at - since BETWEEN interval '599 seconds' AND interval '11 minutes'",
        "SELECT count(*) FROM unknown_voids
         WHERE checks = 2 AND check_at - since BETWEEN interval '3599 seconds' AND interval '61 minutes'",
        "SELECT count(*) FROM unknown_voids
         WHERE checks = 3 AND check_at - since BETWEEN interval '86399 seconds' AND interval '24 hours 1 minute'",
        "SELECT 1 - count(*) FROM unknown_voids",
    ];
    for (number, planned) in (1..).zip(planned) {
        if number == 2 {
            join_all(outage.replicas.iter().map(Replica::kill)).await;
            join_all(outage.replicas.iter().map(Replica::start)).await;
        }
        let before = outage.gateway.status_queries(booking);
        make_checks_due(&outage, &[booking]).await;
        wait_until(&format!("check {number} has run"), || async { outage.world.count(planned).await == 1 }).await;
        assert_eq!(outage.gateway.status_queries(booking), before + 1, "check {number} is made by one replica");
    }
    outage.wait_for_state(&people[0], "EXPIRED", "FAILED").await;
    outage.wait_until_balanced().await;
    outage.end().await;
}
