//! Reports: sales, occupancy, funnel, and takings.
//!
//! Reports read the rows of bookings, payments and refunds; there are no separate totals that could disagree. Only
//! holds, which live in Redis and leave no rows, are counted separately (`selling::holds`). Each report reads one
//! database snapshot, and only a few run at a time (`reading`), so that they do not slow down sales. A theatre reads
//! one at a time, so that it does not keep others waiting. Elsewhere: the pages (`app::staff::pages::reports`), and the
//! day close of tills (`box_office`).

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

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Maximum number of concurrent reports per replica; the other connections serve sales.
const MAX_CONCURRENT: usize = 2;

/// The state of reports on a replica.
pub struct Reports {
    slots: Semaphore,
    /// One slot for each theatre that has read a report.
    of_theatres: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Reports {
    fn default() -> Self {
        Self { slots: Semaphore::new(MAX_CONCURRENT), of_theatres: Mutex::default() }
    }
}

/// The slots of a running report: its theatre's, and one of the replica's.
type ReportSlots<'a> = (OwnedSemaphorePermit, SemaphorePermit<'a>);

impl Reports {
    /// Waits for the slot of a theatre, then for one of the replica: reports of a theatre wait for each other first.
    async fn wait_for_slots(&self, theatre: &str) -> Result<ReportSlots<'_>, AcquireError> {
        let of_theatre = {
            let mut slots = self.of_theatres.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(theatre.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        Ok((of_theatre.acquire_owned().await?, self.slots.acquire().await?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The slots for a report; `None` if it has to wait.
    async fn free_slots<'a>(reports: &'a Reports, theatre: &str) -> Option<ReportSlots<'a>> {
        let slots = tokio::time::timeout(Duration::ZERO, reports.wait_for_slots(theatre)).await;
        slots.ok().map(|slots| slots.expect("no semaphore is closed"))
    }

    #[tokio::test]
    async fn reports_of_a_theatre_wait_for_each_other_and_leave_a_slot_to_another_theatre() {
        let reports = Reports::default();
        let aurora = free_slots(&reports, "aurora").await;
        assert!(aurora.is_some());
        assert!(free_slots(&reports, "aurora").await.is_none(), "one report per theatre");
        let rialto = free_slots(&reports, "rialto").await;
        assert!(rialto.is_some(), "another theatre");
        assert!(free_slots(&reports, "odeon").await.is_none(), "two reports per replica");
        drop(aurora);
        assert!(free_slots(&reports, "rialto").await.is_none());
        assert!(free_slots(&reports, "aurora").await.is_some());
    }
}
