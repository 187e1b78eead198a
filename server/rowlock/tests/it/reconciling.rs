//! The reconciler finishes what nobody finished. Webhooks get lost in all of this, so that nobody else
//! brings the news.

use std::sync::Arc;

use futures::future::join_all;
use reqwest::StatusCode;
use uuid::Uuid;

use crate::buyer::{self, Buyer, id_of};
use crate::faults::till::{Door, Till};
use crate::faults::wires::Wires;
use crate::replicas::Replica;
use crate::world::{World, until};

/// Nobody listens there: what is sent to it is lost.
pub const LOST: (&str, &str) = ("PUBLIC_URL", "http://127.0.0.1:9");

/// Servers that hear of a payment only if they ask.
pub struct Deaf {
    pub world: World,
    pub till: Till,
    pub wires: Arc<Wires>,
    pub replicas: Vec<Replica>,
    servers: Arc<[String]>,
    client: reqwest::Client,
}

impl Deaf {
    pub async fn begin(replicas: usize) -> Self {
        let wires = Arc::<Wires>::default();
        let till = Till::open(Arc::clone(&wires)).await;
        let world = World::start(0, &[("SIMULATOR_URL", till.url.as_str())]).await;
        let replicas: Vec<Replica> = (0..replicas).map(|_| Replica::new(&world, &[LOST])).collect();
        join_all(replicas.iter().map(Replica::start)).await;
        let servers = replicas.iter().map(|replica| replica.url.clone()).collect();
        Self { world, till, wires, replicas, servers, client: buyer::client() }
    }

    /// Somebody with a booking of this seat.
    pub async fn checks_out(&self, seat: u32) -> (Buyer, Uuid) {
        let buyer = Buyer::new(&self.client, &self.servers, self.world.show, format!("{seat}@example.org"));
        let (status, hold) = buyer.hold(&[seat]).await.expect("an answer");
        assert_eq!(status, StatusCode::CREATED, "{hold}");
        let (status, booking) = buyer.book(&hold).await.expect("an answer");
        assert_eq!(status, StatusCode::CREATED, "{booking}");
        (buyer, id_of(&booking))
    }

    /// The same, paying so.
    pub async fn pays(&self, seat: u32, token: Option<&str>) -> (Buyer, Uuid) {
        let (buyer, booking) = self.checks_out(seat).await;
        let (status, answer) = buyer.pay(booking, token).await.expect("an answer");
        assert_eq!(status, StatusCode::OK, "{answer}");
        (buyer, booking)
    }

    /// Runs a statement about these bookings.
    pub async fn with(&self, bookings: &[Uuid], statement: &'static str) {
        sqlx::query(statement).bind(bookings).execute(&self.world.pg).await.expect(statement);
    }

    /// Nobody has heard of these payments for so long that the gateway is asked.
    pub async fn unheard(&self, bookings: &[Uuid]) {
        self.with(bookings, "UPDATE payments SET updated_at = now() - interval '1 minute' WHERE booking_id = ANY($1)")
            .await;
    }

    pub async fn time_is_over(&self, bookings: &[Uuid]) {
        let over =
            "UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1 WHERE id = ANY($1)";
        self.with(bookings, over).await;
    }

    pub async fn ends(&self, (buyer, booking): &(Buyer, Uuid), state: &str, money: &str) {
        until(&format!("booking {booking} is {state} and {money}"), || async {
            buyer.booking(*booking).await.is_ok_and(|found| found["state"] == state && found["money"] == money)
        })
        .await;
    }

    pub async fn balance(&self) {
        self.world.books(self.world.setting("REDIS_URL"), &self.till.simulator).balance().await;
    }

    pub async fn end(self) {
        for replica in &self.replicas {
            replica.kill().await;
        }
        self.world.end().await;
    }
}

fn ids(people: &[(Buyer, Uuid)]) -> Vec<Uuid> {
    people.iter().map(|(_, booking)| *booking).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_finished_is_finished_by_itself() {
    let deaf = Deaf::begin(2).await;
    let held = deaf.checks_out(0).await;
    let paid = deaf.pays(1, None).await;
    let declined = deaf.pays(2, Some("tok_pending_failed")).await;
    let unpaid = deaf.pays(3, None).await;
    deaf.till.press_pay(paid.1);
    deaf.time_is_over(&[held.1, unpaid.1]).await;
    deaf.unheard(&[paid.1, declined.1, unpaid.1]).await;
    deaf.ends(&held, "EXPIRED", "NONE").await;
    deaf.ends(&paid, "CONFIRMED", "PAID").await;
    deaf.ends(&unpaid, "EXPIRED", "FAILED").await;
    until("the bank has said no and was asked", || async {
        deaf.unheard(&[declined.1]).await;
        declined.0.booking(declined.1).await.is_ok_and(|found| found["state"] == "CANCELLED")
    })
    .await;
    deaf.balance().await;
    deaf.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_was_noted_and_left_behind_becomes_a_ticket_or_goes_back() {
    let deaf = Deaf::begin(1).await;
    let (sold, lost) = (deaf.pays(0, None).await, deaf.pays(1, None).await);
    deaf.with(&[lost.1], "UPDATE seat_claims SET state = 'released' WHERE booking_id = ANY($1)").await;
    for (_, booking) in [&sold, &lost] {
        deaf.till.press_pay(*booking);
    }
    // As a crash leaves them between two steps, should they ever be two transactions.
    let left_behind = "UPDATE bookings SET state = 'PAYMENT_SUCCEEDED', money = 'PAID', version = version + 1,
                              updated_at = now() - interval '10 seconds' WHERE id = ANY($1)";
    deaf.with(&[sold.1, lost.1], left_behind).await;
    deaf.ends(&sold, "CONFIRMED", "PAID").await;
    deaf.ends(&lost, "CANCELLED", "REFUNDED").await;
    deaf.balance().await;
    deaf.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_ask_about_a_payment_once() {
    let deaf = Deaf::begin(3).await;
    let people = join_all((0..30).map(|seat| deaf.pays(seat, None))).await;
    let bookings = ids(&people);
    deaf.unheard(&bookings).await;
    until("every payment was asked about", || async {
        bookings.iter().all(|booking| deaf.till.questions(*booking) > 0)
    })
    .await;
    // An overdue booking is settled in a later round of the reconciler: by then all have looked again.
    let late = deaf.checks_out(100).await;
    deaf.time_is_over(&[late.1]).await;
    deaf.ends(&late, "EXPIRED", "NONE").await;
    let asked_twice: Vec<_> = bookings.iter().filter(|booking| deaf.till.questions(**booking) > 1).collect();
    assert!(asked_twice.is_empty(), "asked by more than one: {asked_twice:?}");
    deaf.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_hangs_keeps_no_seat_from_being_freed() {
    let deaf = Deaf::begin(1).await;
    // Far more than are asked side by side, so that the last would be asked long after a test's patience.
    let people = join_all((0..60).map(|seat| deaf.pays(seat, None))).await;
    let held = deaf.checks_out(100).await;
    deaf.till.set_door(Door::Hangs);
    deaf.unheard(&ids(&people)).await;
    until("the gateway is asked in vain", || async { deaf.till.in_vain() > 0 }).await;
    deaf.time_is_over(&[held.1]).await;
    deaf.ends(&held, "EXPIRED", "NONE").await;
    deaf.till.set_door(Door::Open);
    deaf.end().await;
}
