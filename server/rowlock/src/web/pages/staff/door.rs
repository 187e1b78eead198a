//! The door: the shows of today, and the scanner of one.

use app::staff::pages::{Door, door_shows_page};
use uuid::Uuid;

use super::super::SignedInPageResult;
use super::visit::{StaffVisit, VisitOf};
use backoffice::door;

pub(super) async fn shows(visit: StaffVisit) -> SignedInPageResult {
    let shows = door::shows(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| door_shows_page(desk, shows)))
}

pub(super) async fn scanner(visit: VisitOf<Uuid>) -> SignedInPageResult {
    let show = door::show_at(&visit.state, &visit.staff, &visit.desk.theatre, visit.path.1).await?;
    Ok(visit.show(|desk| Door {
        desk,
        show: show.id,
        film: show.film.clone(),
        screen: show.screen.clone(),
        starts_local: show.local_iso(show.starts_at),
    }))
}
