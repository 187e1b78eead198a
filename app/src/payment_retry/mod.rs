//! Data that survives a failed payment: the seats, and the buyer's form.
//!
//! Shared by the seat map, the checkout and the booking page, which are in different modules of the client.

pub mod buyer_details;
pub mod seats_query;
