//! Two who take the same booking in the same moment: one of them has it, and the money is where it is said to be.

use platform::ids::new_id;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::exchanging_for_less::{audited, backed, books, wish};
use super::{PIN, at_work, code, desk, holds, manager, of_booking, sells};
use crate::accounts::Browser;
use crate::world::{PRICE, World, insert_show};

/// How often each two meet: who comes first is not ours to say. More would empty Ben's till.
const ROUNDS: u32 = 2;

/// Who meets whom. What is taken is always a booking of two seats, and an exchange is always for one.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// An exchange and its repeat, under one key.
    Repeat,
    /// Two sellers, each with a hold and a key of their own.
    Sellers,
    /// An exchange and a refund of all of it.
    Refund,
    /// An exchange and the buyer, who paid online and cancels.
    Buyer,
}

/// People at two counters, and a manager's account.
struct Counters {
    ann: Browser,
    ben: Browser,
    max: Value,
}

/// What is left of what was paid: for tickets, and as a fee. The rest went back.
type Left = (i64, i64);

/// Whether it went through; what did not was too late, and nothing else.
fn went_through(answer: &(StatusCode, Value)) -> bool {
    if !answer.0.is_success() {
        assert_eq!(code(answer), (409, "wrong_state".into()), "{}", answer.1);
    }
    answer.0.is_success()
}

/// Exactly one of the two did; whether it was the first.
fn first_has_it(first: &(StatusCode, Value), second: &(StatusCode, Value)) -> bool {
    assert_ne!(went_through(first), went_through(second), "{} {}", first.1, second.1);
    went_through(first)
}

impl Counters {
    async fn meet(&mut self, world: &World, case: Case) -> Left {
        match case {
            Case::Repeat => self.repeat(world).await,
            Case::Sellers => self.sellers(world).await,
            Case::Refund => self.refund(world).await,
            Case::Buyer => self.buyer(world).await,
        }
    }

    /// Ann sold two seats for cash, and now holds another for them.
    async fn sold(&mut self, world: &World) -> (Value, Value) {
        let old = sells(&mut self.ann, world, &[4, 5], "cash").await;
        let hold = holds(&mut self.ann, world, &[8]).await;
        (old, backed(&wish(world.show, &hold), &self.max, PIN))
    }

    /// Ben holds another one.
    async fn bens(&mut self, world: &World) -> Value {
        let hold = holds(&mut self.ben, world, &[9]).await;
        backed(&wish(world.show, &hold), &self.max, PIN)
    }

    async fn repeat(&mut self, world: &World) -> Left {
        let (old, less) = self.sold(world).await;
        let (ann, path, key) = (self.ann.visitor(), of_booking(&old, "/exchange"), new_id().to_string());
        let ask = || ann.call_with_key(Method::POST, &path, less.clone(), &key);
        let (one, other) = tokio::join!(ask(), ask());
        assert_eq!(one.0, StatusCode::CREATED, "{}", one.1);
        assert_eq!(one, other, "the same key: the same answer, however close they come");
        (PRICE, 0)
    }

    async fn sellers(&mut self, world: &World) -> Left {
        let (old, anns) = self.sold(world).await;
        let bens = self.bens(world).await;
        let path = of_booking(&old, "/exchange");
        let (one, other) = tokio::join!(self.ann.post(&path, anns), self.ben.post(&path, bens));
        // Whoever was too late still holds what they held.
        let (sold, held) = if first_has_it(&one, &other) { (8, 9) } else { (9, 8) };
        world.visitor().sees(sold, '2').await;
        world.visitor().sees(held, '1').await;
        (PRICE, 0)
    }

    async fn refund(&mut self, world: &World) -> Left {
        let (old, less) = self.sold(world).await;
        let all = json!({ "reason": "They are ill.", "manager": self.max, "pin": PIN });
        let (path, back) = (of_booking(&old, "/exchange"), of_booking(&old, "/refund"));
        let (exchanged, refunded) = tokio::join!(self.ann.post(&path, less), self.ben.post(&back, all));
        (if first_has_it(&exchanged, &refunded) { PRICE } else { 0 }, 0)
    }

    async fn buyer(&mut self, world: &World) -> Left {
        let buyer = world.visitor();
        let bought = buyer.bought(&[4, 5], "tok_paid").await;
        let less = self.bens(world).await;
        let path = of_booking(&bought, "/exchange");
        let (exchanged, cancelled) = tokio::join!(self.ben.post(&path, less), buyer.cancel(&bought, None));
        if first_has_it(&exchanged, &cancelled) { (PRICE, 0) } else { (0, 2 * PRICE / 10) }
    }

    /// What should be in both tills.
    async fn expected(&mut self) -> i64 {
        let mut sum = 0;
        for seller in [&mut self.ann, &mut self.ben] {
            let (_, till) = seller.get(&desk("till")).await;
            sum += till["expected"]["minor"].as_i64().expect("a sum");
        }
        sum
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_take_a_booking_at_once_one_has_it_and_its_money_is_counted_once() {
    let (mut world, gateway) = audited().await;
    let (_, max) = manager(&world).await;
    let (ann, ben) = (at_work(&world, "ann@example.org").await, at_work(&world, "ben@example.org").await);
    let mut counters = Counters { ann, ben, max };
    let (mut total, mut in_tills) = ([0; 3], 2 * 10_000);
    for case in [Case::Repeat, Case::Sellers, Case::Refund, Case::Buyer].repeat(ROUNDS as usize) {
        world.show = insert_show(&world.pg, 300_000, 30 * 3_600).await;
        let (tickets, fee) = counters.meet(&world, case).await;
        for (sum, part) in total.iter_mut().zip([tickets, 2 * PRICE - tickets - fee, fee]) {
            *sum += part;
        }
        if !matches!(case, Case::Buyer) {
            in_tills += tickets;
        }
        assert_eq!(books(&world, &gateway).await, total, "{case:?}");
        assert_eq!(counters.expected().await, in_tills, "{case:?}");
    }
    let cash = "SELECT sum(amount_minor)::bigint FROM till_rows";
    assert_eq!(world.count(cash).await, in_tills, "every line of the tills, and none twice");
    world.end().await;
}
