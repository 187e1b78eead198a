//! Reports: what a theatre sold, how full its rooms were, how far people came, and what was taken and given back.
//!
//! Everything is read from the rows of bookings, payments and refunds themselves: there is no second set of books that
//! could disagree. Only holds, which live in Redis and leave nothing behind, are counted by us (`selling::holds`).
//! Reports are read in one instant of the database each, a few at a time (`reading`): they never stand in the way of
//! a sale. What is not here: how they look (`app::staff::pages::reports`), and the day close of a till, which is the
//! box office's.

mod endpoints;
mod funnel;
mod occupancy;
mod range;
mod reading;
mod sales;
mod screens;
mod tables;
mod takings;

pub use endpoints::routes;
pub use funnel::funnel;
pub use occupancy::occupancy;
pub use range::{MAX_DAYS, Range};
pub use sales::sales;
pub use screens::screens;
pub use takings::takings;

use tokio::sync::Semaphore;

/// Reports read at a time by this replica; the other connections are for those who buy.
const READ_TOGETHER: usize = 2;

/// What a replica needs for reports.
pub struct Reports {
    together: Semaphore,
}

impl Default for Reports {
    fn default() -> Self {
        Self { together: Semaphore::new(READ_TOGETHER) }
    }
}
