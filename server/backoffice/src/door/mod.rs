//! The door: tickets are looked at, and whoever has a good one is let in once.
//!
//! That once is Postgres' (`door_admissions_once`): one admission that stands for each ticket, whatever devices and
//! replicas believe. A device names its scans, so that a scan it has no answer to can be sent again (`scan`). It may
//! have a list of the show's tickets (`list`), sealed by us (`seal`), and let people in by it while it has no network;
//! what it did is settled later (`settle`) by the rule of [`domain::door::settle`]: the earliest scan of a ticket is
//! its admission, and every other is a conflict, told at the door and written into the audit list.
//!
//! It reads tickets, bookings and shows (`sql/tickets.rs`) and writes none of them. Not here: whether a code is signed
//! (`tickets`), and who may do this (`accounts`): the box office, and so its manager.

mod books;
mod endpoints;
mod list;
mod now;
mod scan;
mod seal;
mod settle;
mod sql;
mod undo;

pub use endpoints::routes;
pub use now::{shows, standing};

use std::sync::Arc;

use domain::api::door::DoorDevice;
use domain::roles::Role;
use uuid::Uuid;

use crate::BackofficeState;
use catalogue::Show;
use http::{Code, Problem};
use identity::accounts::Staff;

/// Who works at the door.
pub const WORKERS: &[Role] = &[Role::BoxOffice];

/// Acts as the audit list names them.
const CONFLICT: &str = "door_conflict";
const UNDONE: &str = "door_admission_undone";

/// A show of the theatre in which somebody works.
///
/// # Errors
/// As [`Staff::at`]; 404 when the theatre has no such show.
pub async fn show_at(state: &BackofficeState, staff: &Staff, theatre: &str, show: Uuid) -> Result<Arc<Show>, Problem> {
    staff.at(theatre, WORKERS)?;
    let show = state.catalogue.show(show).await?.filter(|show| show.theatre_id == theatre);
    show.ok_or_else(|| Problem::not_found("show"))
}

/// A device with a name that can be kept.
fn named(device: &DoorDevice) -> Result<&str, Problem> {
    domain::door::device_name(&device.name).ok_or_else(|| {
        let detail = format!("A device has a name of one line, up to {} characters.", domain::door::MAX_DEVICE_CHARS);
        Problem::new(Code::Malformed, detail)
    })
}
