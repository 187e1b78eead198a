//! Endpoints of the box office.

mod bookings;
mod shows;
mod tills;

use utoipa_axum::router::OpenApiRouter;

use super::CounterStaff;
use crate::BackofficeState;
use crate::staff_request::StaffRequest;

/// The routes of the box office, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new().merge(tills::routes()).merge(shows::routes()).merge(bookings::routes())
}

impl<R, P> StaffRequest<R, P> {
    /// The caller at the counter of the theatre.
    fn counter(&self) -> CounterStaff<'_> {
        CounterStaff { staff: &self.staff, theatre: &self.theatre }
    }
}
