//! Creates the booking of a saga: checked out for a later payment, or checked out and paid in one request.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{Case, POLL_INTERVAL, SEATS, SagaOrder, SagaRunner};
use crate::buyer::{Buyer, RequestResult, id_of};
use crate::faults::sagas::Saga;
use crate::prelude::*;

impl SagaRunner {
    /// Creates a booking of a new buyer. The fault is armed before a charge is possible.
    pub(super) async fn order(&self, case: Case) -> Result<SagaOrder, String> {
        let number = self.next_seat.fetch_add(SEATS, Ordering::Relaxed);
        let show = match case.saga {
            Saga::ShowStarted => self.premiere.lock().unwrap_or_else(PoisonError::into_inner).show,
            _ => self.world.show,
        };
        let email = format!("{number}@example.org");
        let buyer = Buyer::new(&self.client, &self.servers, show, email)
            .with_late_payment_choice(case.saga.if_late())
            .without_deadline();
        let seats: Vec<u32> = (number..number + SEATS).collect();
        let hold = expect_status(buyer.hold(&seats).await, &[StatusCode::CREATED])?;
        let made = async {
            let (booking, reference) = self.booking_of_hold(id_of(&hold)).await;
            if let Some((effect, fault)) = case.strike {
                if fault.is_in_transit() {
                    self.injector.arm(booking, effect, fault);
                } else {
                    self.outbox_faults.arm(booking, effect, fault).await;
                }
            }
            // From here on the gateway charges it.
            self.injector.register(booking, id_of(&hold), &buyer.email);
            Ok((booking, reference))
        };
        let asked = async {
            match case.saga.in_one_request() {
                None => expect_status(buyer.book(&hold).await, &[StatusCode::CREATED]),
                // If the first attempt died with its server and the next server finished it, a new key gets a 200 or a
                // 410.
                Some(token) => {
                    let result = buyer.buy(&hold, token).await;
                    expect_status(result, &[StatusCode::CREATED, StatusCode::OK, StatusCode::GONE])
                }
            }
        };
        let ((booking, reference), _) = tokio::try_join!(made, asked)?;
        Ok(SagaOrder { buyer, booking, reference, seat: number, strike: case.strike })
    }

    /// Waits until a hold has become a booking. Returns its id and reference.
    async fn booking_of_hold(&self, hold: Uuid) -> (Uuid, String) {
        loop {
            let made = sqlx::query_as("SELECT id, reference FROM bookings WHERE hold_id = $1").bind(hold);
            if let Some(made) = made.fetch_optional(&self.world.pg).await.expect("bookings are read") {
                return made;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn expect_status(result: RequestResult, wanted: &[StatusCode]) -> Result<Value, String> {
    match result? {
        (status, answer) if wanted.contains(&status) => Ok(answer),
        (status, answer) => Err(format!("{status} {answer}")),
    }
}
