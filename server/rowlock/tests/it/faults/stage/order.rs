//! How a booking comes about in a saga: checked out to be paid later, or checked out and paid in one request.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use reqwest::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use super::{Case, LOOK_AGAIN, Order, SEATS, Stage};
use crate::buyer::{Buyer, Told, id_of};
use crate::faults::sagas::Saga;

impl Stage {
    /// A booking of a buyer of its own. What is to go wrong is armed before anybody can be charged.
    pub(super) async fn order(&self, case: Case) -> Result<Order, String> {
        let number = self.next_seat.fetch_add(SEATS, Ordering::Relaxed);
        let show = match case.saga {
            Saga::ShowStarted => self.premiere.lock().unwrap_or_else(PoisonError::into_inner).show,
            _ => self.world.show,
        };
        let email = format!("{number}@example.org");
        let buyer =
            Buyer::new(&self.client, &self.servers, show, email).with_late_wish(case.saga.if_late()).without_end();
        let seats: Vec<u32> = (number..number + SEATS).collect();
        let hold = expect(buyer.hold(&seats).await, &[StatusCode::CREATED])?;
        let made = async {
            let (booking, reference) = self.made_of(id_of(&hold)).await;
            if let Some((effect, fault)) = case.strike {
                if fault.is_on_the_way() {
                    self.wires.arm(booking, effect, fault);
                } else {
                    self.notes.arm(booking, effect, fault).await;
                }
            }
            // From here on the gateway takes its money.
            self.wires.introduce(booking, id_of(&hold), &buyer.email);
            Ok((booking, reference))
        };
        let asked = async {
            match case.saga.in_one_request() {
                None => expect(buyer.book(&hold).await, &[StatusCode::CREATED]),
                // With another key, or over already, if the first try died with its server and the next has finished it.
                Some(token) => {
                    let told = buyer.buy(&hold, token).await;
                    expect(told, &[StatusCode::CREATED, StatusCode::OK, StatusCode::GONE])
                }
            }
        };
        let ((booking, reference), _) = tokio::try_join!(made, asked)?;
        Ok(Order { buyer, booking, reference, seat: number, strike: case.strike })
    }

    /// Waits until a hold has become a booking; its id and its name.
    async fn made_of(&self, hold: Uuid) -> (Uuid, String) {
        loop {
            let made = sqlx::query_as("SELECT id, reference FROM bookings WHERE hold_id = $1").bind(hold);
            if let Some(made) = made.fetch_optional(&self.world.pg).await.expect("bookings are read") {
                return made;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn expect(told: Told, wanted: &[StatusCode]) -> Result<Value, String> {
    match told? {
        (status, answer) if wanted.contains(&status) => Ok(answer),
        (status, answer) => Err(format!("{status} {answer}")),
    }
}
