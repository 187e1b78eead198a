//! Reports: sales, occupancy, funnel, and takings.
//!
//! Reports read the rows of bookings, payments and refunds; there are no separate totals that could disagree. Only
//! holds, which live in Redis and leave no rows, are counted separately (`selling::holds`). Each report reads one
//! database snapshot, and only a few run at a time (`reading`), so that they do not slow down sales. Elsewhere: the
//! pages (`app::staff::pages::reports`), and the day close of tills (`box_office`).

mod endpoints;
mod funnel;
mod occupancy;
mod range;
mod reading;
mod sales;
mod tables;
mod takings;

pub use endpoints::routes;
pub use funnel::funnel;
pub use occupancy::occupancy;
pub use range::{MAX_DAYS, Range};
pub use reading::screens;
pub use sales::sales;
pub use takings::takings;

use tokio::sync::Semaphore;

/// Maximum number of concurrent reports per replica; the other connections serve sales.
const MAX_CONCURRENT: usize = 2;

/// The state of reports on a replica.
pub struct Reports {
    slots: Semaphore,
}

impl Default for Reports {
    fn default() -> Self {
        Self { slots: Semaphore::new(MAX_CONCURRENT) }
    }
}
