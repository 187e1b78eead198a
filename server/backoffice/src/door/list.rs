//! Lists the tickets of a show for a device that may lose its network: digests and their validity.

use domain::api::door::{DoorList, UsedTicket};
use domain::door::digest;
use uuid::Uuid;

use super::scan::require_open_door;
use super::seal::{ListScope, seal};
use super::sql::tickets;
use crate::BackofficeState;
use catalogue::Show;
use http::{Code, Problem};
use platform::clock::from_utc;

/// Maximum number of tickets on a list: the limit of the memory of a telephone.
const MAX_LISTED: i64 = 100_000;

/// Builds the current list of the show.
pub(super) async fn list(state: &BackofficeState, show: &Show, device: Uuid) -> Result<DoorList, Problem> {
    let now = state.clock.now();
    require_open_door(show, now)?;
    let rows = tickets::of_show(&state.pg, show.id, MAX_LISTED + 1).await?;
    if rows.len() as i64 > MAX_LISTED {
        let detail = "The show has more tickets than a device can keep. Its door needs a network.";
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let (mut open, mut used, mut not_valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let digest = digest(show.id, &row.code);
        match (row.is_good, row.used_at, row.used_where) {
            (_, Some(at), Some(device)) => {
                used.push(UsedTicket { digest, at: show.local_iso(from_utc(at)), device });
            }
            (true, ..) => open.push(digest),
            (false, ..) => not_valid.push(digest),
        }
    }
    let scope = ListScope { theatre: &show.theatre_id, show: show.id };
    let digests = open.iter().chain(used.iter().map(|ticket| &ticket.digest)).chain(&not_valid).map(String::as_str);
    let seal = seal(scope, device, now, digests, &state.token_secrets);
    Ok(DoorList { seal, made_at: show.local_iso(now), open, used, not_valid })
}
