//! What a buyer keeps after a payment that failed: the seats they had, and what they typed.
//!
//! The seat map, the checkout and the booking page use it, which are in different modules of the browser half.

pub mod buyer_details;
pub mod seats_query;
