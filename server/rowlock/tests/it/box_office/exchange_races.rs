//! Two concurrent actions on one booking: exactly one succeeds, and the money matches it.

use platform::ids::new_id;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::exchange_for_less::{approved, audited_world, balanced_sums, exchange_body};
use super::{PIN, booking_path, code, desk_path, hold_seats, manager, sell_seats, seller_with_open_till};
use crate::accounts::Browser;
use crate::world::{PRICE, World, insert_show};

/// Rounds per case, because either side may win. More would empty Ben's till.
const ROUNDS: u32 = 2;

/// Concurrent pairs. The booking always has two seats, and an exchange always takes one.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// An exchange and its retry under one key.
    Repeat,
    /// Two sellers, each with a hold and a key.
    Sellers,
    /// An exchange and a refund of the whole booking.
    Refund,
    /// An exchange, and the buyer, who paid online and cancels.
    Buyer,
}

/// Sellers at two counters, and a manager's account.
struct Counters {
    ann: Browser,
    ben: Browser,
    max: Value,
}

/// Money that is kept: for tickets, and as a fee. The rest is refunded.
type KeptMoney = (i64, i64);

/// Returns whether the action succeeded. A failure must be the conflict.
fn is_success(answer: &(StatusCode, Value)) -> bool {
    if !answer.0.is_success() {
        assert_eq!(code(answer), (409, "wrong_state".into()), "{}", answer.1);
    }
    answer.0.is_success()
}

/// Asserts that exactly one of two actions succeeded. Returns whether it was the first.
fn is_first_successful(first: &(StatusCode, Value), second: &(StatusCode, Value)) -> bool {
    assert_ne!(is_success(first), is_success(second), "{} {}", first.1, second.1);
    is_success(first)
}

impl Counters {
    async fn run_concurrently(&mut self, world: &World, case: Case) -> KeptMoney {
        match case {
            Case::Repeat => self.repeat(world).await,
            Case::Sellers => self.sellers(world).await,
            Case::Refund => self.refund(world).await,
            Case::Buyer => self.buyer(world).await,
        }
    }

    /// Ann sells two seats for cash and holds another one for the exchange.
    async fn sale_and_hold(&mut self, world: &World) -> (Value, Value) {
        let old = sell_seats(&mut self.ann, world, &[4, 5], "cash").await;
        let hold = hold_seats(&mut self.ann, world, &[8]).await;
        (old, approved(&exchange_body(world.show, &hold), &self.max, PIN))
    }

    /// Ben holds another seat.
    async fn hold_of_ben(&mut self, world: &World) -> Value {
        let hold = hold_seats(&mut self.ben, world, &[9]).await;
        approved(&exchange_body(world.show, &hold), &self.max, PIN)
    }

    async fn repeat(&mut self, world: &World) -> KeptMoney {
        let (old, less) = self.sale_and_hold(world).await;
        let (ann, path, key) = (self.ann.visitor(), booking_path(&old, "/exchange"), new_id().to_string());
        let ask = || ann.call_with_key(Method::POST, &path, less.clone(), &key);
        let (one, other) = tokio::join!(ask(), ask());
        assert_eq!(one.0, StatusCode::CREATED, "{}", one.1);
        assert_eq!(one, other, "concurrent requests with one key get one answer");
        (PRICE, 0)
    }

    async fn sellers(&mut self, world: &World) -> KeptMoney {
        let (old, anns) = self.sale_and_hold(world).await;
        let bens = self.hold_of_ben(world).await;
        let path = booking_path(&old, "/exchange");
        let (one, other) = tokio::join!(self.ann.post(&path, anns), self.ben.post(&path, bens));
        // The losing side still has its hold.
        let (sold, held) = if is_first_successful(&one, &other) { (8, 9) } else { (9, 8) };
        world.visitor().wait_for_seat(sold, '2').await;
        world.visitor().wait_for_seat(held, '1').await;
        (PRICE, 0)
    }

    async fn refund(&mut self, world: &World) -> KeptMoney {
        let (old, less) = self.sale_and_hold(world).await;
        let all = json!({ "reason": "They are ill.", "manager": self.max, "pin": PIN });
        let (path, back) = (booking_path(&old, "/exchange"), booking_path(&old, "/refund"));
        let (exchanged, refunded) = tokio::join!(self.ann.post(&path, less), self.ben.post(&back, all));
        (if is_first_successful(&exchanged, &refunded) { PRICE } else { 0 }, 0)
    }

    async fn buyer(&mut self, world: &World) -> KeptMoney {
        let buyer = world.visitor();
        let bought = buyer.buy_seats(&[4, 5], "tok_paid").await;
        let less = self.hold_of_ben(world).await;
        let path = booking_path(&bought, "/exchange");
        let (exchanged, cancelled) = tokio::join!(self.ben.post(&path, less), buyer.cancel(&bought, None));
        if is_first_successful(&exchanged, &cancelled) { (PRICE, 0) } else { (0, 2 * PRICE / 10) }
    }

    /// Expected cash in both tills.
    async fn expected(&mut self) -> i64 {
        let mut sum = 0;
        for seller in [&mut self.ann, &mut self.ben] {
            let (_, till) = seller.get(&desk_path("till")).await;
            sum += till["expected"]["minor"].as_i64().expect("a sum");
        }
        sum
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_actions_on_a_booking_wins_and_money_is_counted_once() {
    let (mut world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let (ann, ben) = (
        seller_with_open_till(&world, "ann@example.org").await,
        seller_with_open_till(&world, "ben@example.org").await,
    );
    let mut counters = Counters { ann, ben, max };
    let (mut total, mut in_tills) = ([0; 3], 2 * 10_000);
    for case in [Case::Repeat, Case::Sellers, Case::Refund, Case::Buyer].repeat(ROUNDS as usize) {
        world.show = insert_show(&world.pg, 300_000, 30 * 3_600).await;
        let (tickets, fee) = counters.run_concurrently(&world, case).await;
        for (sum, part) in total.iter_mut().zip([tickets, 2 * PRICE - tickets - fee, fee]) {
            *sum += part;
        }
        if !matches!(case, Case::Buyer) {
            in_tills += tickets;
        }
        assert_eq!(balanced_sums(&world, &gateway).await, total, "{case:?}");
        assert_eq!(counters.expected().await, in_tills, "{case:?}");
    }
    let cash = "SELECT sum(amount_minor)::bigint FROM till_rows";
    assert_eq!(world.count(cash).await, in_tills, "every till row once");
}
