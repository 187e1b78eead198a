//! The door: scans tickets and admits each valid ticket once.
//!
//! Postgres guarantees the single admission: the unique index `door_admissions_once` allows one active admission per
//! ticket, whatever devices and replicas assume. A device chooses the ids of its scans, so that it can retry a scan
//! without an answer (`scan`). A device may get a signed list of the show's tickets (`list`) and admit people
//! by it without a network. Its scans are settled later (`settle`) by the rule of [`domain::door::settle`]: the
//! earliest scan of a ticket is its admission. Every other scan is a conflict, which the door and the audit list show.
//!
//! The module reads tickets, bookings and shows (`sql`) and never writes them. Elsewhere: the signature of a
//! code (`tickets`) and roles (`accounts`). The box office and managers may use the door.

mod endpoints;
mod list;
mod scan;
mod settle;
mod sql;
mod status;
mod ticket_lookup;
mod undo;

pub use endpoints::routes;
pub use status::{show_status, shows};

use std::sync::Arc;

use domain::api::door::DoorDevice;
use domain::roles::Role;
use uuid::Uuid;

use crate::BackofficeState;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use identity::accounts::Staff;

/// Roles that may work at the door.
pub const WORKERS: &[Role] = &[Role::BoxOffice];

/// Names of audit actions.
const CONFLICT: &str = "door_conflict";
const UNDONE: &str = "door_admission_undone";

/// Returns a show of the theatre, for its staff.
///
/// # Errors
/// As [`Staff::at`]; 404 when the theatre has no such show.
pub async fn show_at(state: &BackofficeState, staff: &Staff, theatre: &str, show: Uuid) -> ApiResult<Arc<Show>> {
    staff.at(theatre, WORKERS)?;
    let show = state.catalogue.show(show).await?.filter(|show| show.theatre_id == theatre);
    show.ok_or_else(|| Problem::not_found("show"))
}

fn check_device_name(device: &DoorDevice) -> ApiResult<&str> {
    domain::door::device_name(&device.name).ok_or_else(|| {
        let detail = format!("A device has a name of one line, up to {} characters.", domain::door::MAX_DEVICE_CHARS);
        Problem::new(Code::Malformed, detail)
    })
}
