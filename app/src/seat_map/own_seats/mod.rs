//! The visitor's wish and hold: the cart, the requests that bring the hold to the wish, and offers of other seats.

mod area_offers;
pub(super) mod areas;
pub mod cart;
pub(super) mod offers;
pub mod own_hold;
pub(super) mod party;
mod refusals;
pub(super) mod reoffer;
pub(super) mod watched;
pub mod wishes;
