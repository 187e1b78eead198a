//! A charge that reaches its gateway after the payment was voided there as unknown: the payment is voided again, and the
//! money is late money. No webhook arrives in these tests.

use futures::future::join_all;
use simulator::payment::Status;
use uuid::Uuid;

use crate::buyer::Buyer;
use crate::faults::till::Door;
use crate::reconciling::Deaf;
use crate::replicas::Replica;
use crate::world::until;

/// Bookings that are over, whose charge never reached the gateway: it answered their voids with "unknown".
async fn unknown(deaf: &Deaf, seats: &[u32]) -> Vec<(Buyer, Uuid)> {
    let mut people = Vec::new();
    for seat in seats {
        people.push(deaf.checks_out(*seat).await);
    }
    deaf.till.set_door(Door::Shut);
    for (buyer, booking) in &people {
        // The server's answer does not matter here.
        let _ = buyer.pay(*booking, Some("tok_paid")).await;
    }
    let ids: Vec<Uuid> = people.iter().map(|(_, booking)| *booking).collect();
    deaf.with(&ids, "UPDATE outbox SET run_after = now() + interval '1 hour' WHERE booking_id = ANY($1)").await;
    deaf.time_is_over(&ids).await;
    deaf.till.set_door(Door::Open);
    deaf.unheard(&ids).await;
    until("their time is over", || async {
        deaf.world.count("SELECT count(*) FROM bookings WHERE state = 'EXPIRED'").await == ids.len() as i64
    })
    .await;
    deaf.with(&ids, "UPDATE outbox SET run_after = now() WHERE booking_id = ANY($1)").await;
    for person in &people {
        deaf.ends(person, "EXPIRED", "FAILED").await;
    }
    until("their seats are free", || async { deaf.world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let planned = "SELECT count(*) FROM unknown_voids WHERE checks = 0 AND check_at = since + interval '1 minute'";
    assert_eq!(deaf.world.count(planned).await, ids.len() as i64, "the next void is in a minute");
    people
}

/// The charge of a booking reaches the gateway after all; without a card it waits for its payer.
fn arrives(deaf: &Deaf, booking: Uuid, card: Option<&str>) {
    deaf.till.open_unheard(&booking.to_string(), &format!("pay:{booking}"), card);
}

fn stands(deaf: &Deaf, booking: Uuid) -> Status {
    deaf.till.simulator.ledger.get_by_key(&format!("pay:{booking}")).expect("a payment").status
}

/// Time goes by until the next check of these.
async fn comes_due(deaf: &Deaf, bookings: &[Uuid]) {
    let later =
        "UPDATE unknown_voids SET since = since - (check_at - now()), check_at = now() WHERE booking_id = ANY($1)";
    deaf.with(bookings, later).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_arrives_after_it_was_called_off_is_late_money_and_one_under_way_is_stopped() {
    let deaf = Deaf::begin(2).await;
    let people = unknown(&deaf, &[0, 1, 2]).await;
    let [placed, returned, stopped] = [people[0].1, people[1].1, people[2].1];
    // Its seat is another's by then: the money goes back.
    deaf.pays(1, Some("tok_paid")).await;
    arrives(&deaf, placed, Some("no_answer_paid"));
    arrives(&deaf, returned, Some("paid"));
    arrives(&deaf, stopped, None);
    until("the bank has said yes", || async { stands(&deaf, placed) == Status::Succeeded }).await;
    assert_eq!(deaf.world.count("SELECT count(*) FROM bookings WHERE money <> 'FAILED'").await, 1, "no news arrives");
    comes_due(&deaf, &[placed, returned, stopped]).await;
    deaf.ends(&people[0], "EXPIRED", "MOVED").await;
    deaf.ends(&people[1], "EXPIRED", "REFUNDED").await;
    until("nothing is left to be asked", || async {
        deaf.world.count("SELECT count(*) FROM unknown_voids").await == 0
    })
    .await;
    assert_eq!(stands(&deaf, stopped), Status::Voided);
    deaf.ends(&people[2], "EXPIRED", "FAILED").await;
    assert_eq!(deaf.world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 2);
    deaf.balance().await;
    deaf.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_payment_is_voided_four_more_times_by_one_replica_also_after_a_restart() {
    let deaf = Deaf::begin(2).await;
    let people = unknown(&deaf, &[5]).await;
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
            join_all(deaf.replicas.iter().map(Replica::kill)).await;
            join_all(deaf.replicas.iter().map(Replica::start)).await;
        }
        let before = deaf.till.questions(booking);
        comes_due(&deaf, &[booking]).await;
        until(&format!("check {number} is made"), || async { deaf.world.count(planned).await == 1 }).await;
        assert_eq!(deaf.till.questions(booking), before + 1, "check {number} is made by one replica");
    }
    deaf.ends(&people[0], "EXPIRED", "FAILED").await;
    deaf.balance().await;
    deaf.end().await;
}
