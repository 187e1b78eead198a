//! What the visitor wants and has: the cart, the requests that bring a hold after it, a party's places.

pub(super) mod areas;
pub mod cart;
pub(super) mod nearest;
pub(super) mod once_more;
pub(super) mod own_hold;
pub(super) mod party;
pub(super) mod requests;
pub(super) mod watch;
