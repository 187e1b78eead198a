//! The reconciler finishes abandoned payments. Webhooks are lost in these tests, so only the reconciler gets the
//! outcomes.

use std::sync::Arc;

use futures::future::join_all;
use reqwest::StatusCode;
use uuid::Uuid;

use crate::buyer::{self, Buyer, id_of};
use crate::faults::gateway_proxy::{Availability, GatewayProxy};
use crate::faults::injector::FaultInjector;
use crate::replicas::Replica;
use crate::world::{World, expect_answer, wait_until};

/// No server listens there: webhooks are lost.
pub const NO_WEBHOOKS: (&str, &str) = ("PUBLIC_URL", "http://127.0.0.1:9");

/// Servers that get no webhook and must query the gateway.
pub struct WebhookOutage {
    pub world: World,
    pub gateway: GatewayProxy,
    pub injector: Arc<FaultInjector>,
    pub replicas: Vec<Replica>,
    servers: Arc<[String]>,
    client: reqwest::Client,
}

impl WebhookOutage {
    pub async fn start(replicas: usize) -> Self {
        let injector = Arc::<FaultInjector>::default();
        let gateway = GatewayProxy::open(Arc::clone(&injector)).await;
        let world = World::start(0, &[("SIMULATOR_URL", gateway.url.as_str())]).await;
        let replicas: Vec<Replica> = (0..replicas).map(|_| Replica::new(&world, &[NO_WEBHOOKS])).collect();
        join_all(replicas.iter().map(Replica::start)).await;
        let servers = replicas.iter().map(|replica| replica.url.clone()).collect();
        Self { world, gateway, injector, replicas, servers, client: buyer::client() }
    }

    /// A buyer with a booking of this seat.
    pub async fn check_out(&self, seat: u32) -> (Buyer, Uuid) {
        let buyer = Buyer::new(&self.client, &self.servers, self.world.show, format!("{seat}@example.org"));
        let hold = expect_answer(buyer.hold(&[seat]).await.expect("an answer"), StatusCode::CREATED);
        let booking = expect_answer(buyer.book(&hold).await.expect("an answer"), StatusCode::CREATED);
        (buyer, id_of(&booking))
    }

    /// A buyer with a booking of this seat, paid with this token.
    pub async fn check_out_and_pay(&self, seat: u32, token: Option<&str>) -> (Buyer, Uuid) {
        let (buyer, booking) = self.check_out(seat).await;
        expect_answer(buyer.pay(booking, token).await.expect("an answer"), StatusCode::OK);
        (buyer, booking)
    }

    /// Runs a statement about these bookings.
    pub async fn run_statement(&self, bookings: &[Uuid], statement: &'static str) {
        sqlx::query(statement).bind(bookings).execute(&self.world.pg).await.expect(statement);
    }

    /// Ages these payments until the gateway is queried.
    pub async fn age_payments(&self, bookings: &[Uuid]) {
        self.run_statement(
            bookings,
            "UPDATE payments SET updated_at = now() - interval '1 minute' WHERE booking_id = ANY($1)",
        )
        .await;
    }

    pub async fn expire_bookings(&self, bookings: &[Uuid]) {
        let over =
            "UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1 WHERE id = ANY($1)";
        self.run_statement(bookings, over).await;
    }

    pub async fn wait_for_state(&self, (buyer, booking): &(Buyer, Uuid), state: &str, money: &str) {
        wait_until(&format!("booking {booking} is {state} and {money}"), || async {
            buyer.booking(*booking).await.is_ok_and(|found| found["state"] == state && found["money"] == money)
        })
        .await;
    }

    pub async fn wait_until_balanced(&self) {
        self.world.books(self.world.setting("REDIS_URL"), &self.gateway.simulator).wait_until_balanced().await;
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
async fn abandoned_payments_are_finished_by_the_reconciler() {
    let outage = WebhookOutage::start(2).await;
    let held = outage.check_out(0).await;
    let paid = outage.check_out_and_pay(1, None).await;
    let declined = outage.check_out_and_pay(2, Some("tok_pending_failed")).await;
    let unpaid = outage.check_out_and_pay(3, None).await;
    outage.gateway.press_pay(paid.1);
    outage.expire_bookings(&[held.1, unpaid.1]).await;
    outage.age_payments(&[paid.1, declined.1, unpaid.1]).await;
    outage.wait_for_state(&held, "EXPIRED", "NONE").await;
    outage.wait_for_state(&paid, "CONFIRMED", "PAID").await;
    outage.wait_for_state(&unpaid, "EXPIRED", "FAILED").await;
    wait_until("the gateway was queried after the decline", || async {
        outage.age_payments(&[declined.1]).await;
        declined.0.booking(declined.1).await.is_ok_and(|found| found["state"] == "CANCELLED")
    })
    .await;
    outage.wait_until_balanced().await;
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_money_without_a_next_step_becomes_a_ticket_or_a_refund() {
    let outage = WebhookOutage::start(1).await;
    let (sold, lost) = (outage.check_out_and_pay(0, None).await, outage.check_out_and_pay(1, None).await);
    outage.run_statement(&[lost.1], "UPDATE seat_claims SET state = 'released' WHERE booking_id = ANY($1)").await;
    for (_, booking) in [&sold, &lost] {
        outage.gateway.press_pay(*booking);
    }
    // State after a crash between two steps, if they were separate transactions.
    let left_behind = "UPDATE bookings SET state = 'PAYMENT_SUCCEEDED', money = 'PAID', version = version + 1,
                              updated_at = now() - interval '10 seconds' WHERE id = ANY($1)";
    outage.run_statement(&[sold.1, lost.1], left_behind).await;
    outage.wait_for_state(&sold, "CONFIRMED", "PAID").await;
    outage.wait_for_state(&lost, "CANCELLED", "REFUNDED").await;
    outage.wait_until_balanced().await;
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_query_a_payment_once() {
    let outage = WebhookOutage::start(3).await;
    let people = join_all((0..30).map(|seat| outage.check_out_and_pay(seat, None))).await;
    let bookings = ids(&people);
    outage.age_payments(&bookings).await;
    wait_until("every payment was queried", || async {
        bookings.iter().all(|booking| outage.gateway.status_queries(*booking) > 0)
    })
    .await;
    // An overdue booking is settled in a later round of the reconciler; by then every replica has had a round.
    let late = outage.check_out(100).await;
    outage.expire_bookings(&[late.1]).await;
    outage.wait_for_state(&late, "EXPIRED", "NONE").await;
    let asked_twice: Vec<_> = bookings.iter().filter(|booking| outage.gateway.status_queries(**booking) > 1).collect();
    assert!(asked_twice.is_empty(), "queried by several replicas: {asked_twice:?}");
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_gateway_does_not_delay_the_release_of_seats() {
    let outage = WebhookOutage::start(1).await;
    // Many more than are queried concurrently: the last query would come after the test's timeout.
    let people = join_all((0..60).map(|seat| outage.check_out_and_pay(seat, None))).await;
    let held = outage.check_out(100).await;
    outage.gateway.set_availability(Availability::Hanging);
    outage.age_payments(&ids(&people)).await;
    wait_until("a query hangs", || async { outage.gateway.refused_requests() > 0 }).await;
    outage.expire_bookings(&[held.1]).await;
    outage.wait_for_state(&held, "EXPIRED", "NONE").await;
    outage.gateway.set_availability(Availability::Up);
    outage.end().await;
}
