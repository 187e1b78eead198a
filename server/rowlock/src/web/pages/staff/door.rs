//! The door: the shows of today, and the scanner of one.

use app::staff::pages::{Door, DoorShows};
use serde::Deserialize;
use uuid::Uuid;

use super::visit::{PageResult, StaffVisit};
use backoffice::door;

pub(super) async fn shows(visit: StaffVisit) -> PageResult {
    let shows = door::shows(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| DoorShows { desk, shows }))
}

#[derive(Deserialize)]
pub(super) struct OfShow {
    show: Uuid,
}

pub(super) async fn scanner(visit: StaffVisit<OfShow>) -> PageResult {
    let show = door::show_at(&visit.state, &visit.staff, &visit.desk.theatre, visit.path.show).await?;
    Ok(visit.show(|desk| Door {
        desk,
        show: show.id,
        film: show.film.clone(),
        screen: show.screen.clone(),
        starts_local: show.local_iso(show.starts_at),
    }))
}
