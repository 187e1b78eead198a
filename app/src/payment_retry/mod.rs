//! The start of a payment, and the data that survives a failed one: the seats, and the buyer's form.
//!
//! Shared by the seat map, the checkout and the booking page, which are in different modules of the client.

pub mod buyer_details;
pub mod seats_query;

use serde::Deserialize;
use uuid::Uuid;

use crate::browser;

/// Path of the bookings.
pub const BOOKINGS: &str = "/api/v1/bookings";

/// The part of a booking needed to open its payment page.
#[derive(Deserialize)]
pub struct StartedPayment {
    /// The booking.
    pub id: Uuid,
    pay_url: Option<String>,
}

impl StartedPayment {
    /// Leaves for the payment page, or for the booking's without one.
    pub fn open(self) {
        browser::go_to(&self.pay_url.unwrap_or_else(|| format!("/bookings/{}", self.id)));
    }
}
