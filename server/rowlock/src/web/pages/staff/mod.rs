//! Pages of a theatre's staff, a file per section. Callers who are not signed in are redirected to the sign-in page, or
//! get 401 for a form; callers without a role in the theatre get 404.

mod box_office;
mod door;
mod parked;
mod prices;
mod programme;
mod rehearsal;
mod reports;
mod rooms;
mod show;
mod systems;
mod team;
mod theatre;
mod unusual;
mod visit;
mod waiting_room;

use std::collections::HashMap;

use app::staff::pages::{Entrance, Form, NewTheatre, Section, Workplace};
use axum::Extension;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{MethodRouter, get, post};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use language::StaffError;

use super::{PageError, SignedInPageResult, private_page, signed_in};
use crate::AppState;
use crate::web::budget::{NEVER, REPORT};
use backoffice::organiser::MAX_FILE_BYTES;
use http::{Code, Problem};
use identity::accounts::{self, Staff};
use platform::ids;
use selling::bookings;

const MAX_FORM_BYTES: usize = 8 * 1024;
/// Largest form with prices or long texts, bytes: prices of five hundred categories are below.
const MAX_LONG_FORM_BYTES: usize = 256 * 1024;
/// Largest form with a room in it, bytes: a form writes each character of a file that is neither letter nor digit as
/// three, and about a third are.
const MAX_ROOM_FORM_BYTES: usize = 2 * MAX_FILE_BYTES;

/// The pages of a theatre. The roles of its section may open a page.
fn of_theatre() -> Vec<(Section, &'static str, MethodRouter<AppState>)> {
    use Section::{BoxOffice, Door, Parked, Prices, Reports, Rooms, Shows, Systems, Team, Theatre, Unusual};
    use box_office::forms;
    vec![
        (BoxOffice, "/staff/{theatre}/box-office", get(box_office::day)),
        (BoxOffice, "/staff/{theatre}/box-office/till/{act}", post(forms::till)),
        (BoxOffice, "/staff/{theatre}/box-office/tills/{till}/cash-up", post(forms::count_for)),
        (BoxOffice, "/staff/{theatre}/box-office/day-close", post(forms::close_day)),
        (BoxOffice, "/staff/{theatre}/box-office/pin", post(forms::set_pin)),
        (BoxOffice, "/staff/{theatre}/box-office/shows/{show}", get(box_office::sale)),
        (BoxOffice, "/staff/{theatre}/box-office/bookings", get(box_office::find)),
        (BoxOffice, "/staff/{theatre}/box-office/bookings/{booking}", get(box_office::booking)),
        (BoxOffice, "/staff/{theatre}/box-office/bookings/{booking}/exchange", get(box_office::choose_show)),
        (BoxOffice, "/staff/{theatre}/box-office/bookings/{booking}/{act}", post(forms::booking)),
        (Door, "/staff/{theatre}/door", get(door::shows)),
        (Door, "/staff/{theatre}/door/{show}", get(door::scanner)),
        (Shows, "/staff/{theatre}/shows", get(programme::calendar).post(programme::add_show)),
        (Shows, "/staff/{theatre}/shows/move", post(programme::move_draft)),
        (Shows, "/staff/{theatre}/shows/plan", get(programme::planning).post(programme::plan)),
        (Shows, "/staff/{theatre}/shows/{show}", get(show::show_page)),
        (Shows, "/staff/{theatre}/shows/{show}/terms", post(show::terms)),
        (Shows, "/staff/{theatre}/shows/{show}/cancel", post(show::cancel)),
        (Shows, "/staff/{theatre}/shows/{show}/defective-seats", post(show::defective_seats)),
        (Shows, "/staff/{theatre}/shows/{show}/move", get(show::preview_move).post(show::start_move)),
        (Shows, "/staff/{theatre}/shows/{show}/waiting-room", get(waiting_room::show_page)),
        (Shows, "/staff/{theatre}/shows/{show}/waiting-room/terms", get(waiting_room::terms).post(waiting_room::set)),
        (
            Shows,
            "/staff/{theatre}/shows/{show}/waiting-room/off",
            get(waiting_room::end).post(waiting_room::switch_off),
        ),
        (Shows, "/staff/{theatre}/shows/{show}/rehearsal", get(rehearsal::show_page).post(rehearsal::start)),
        (Shows, "/staff/{theatre}/shows/{show}/rehearsal/stop", post(rehearsal::stop)),
        (Shows, "/staff/{theatre}/shows/{show}/rehearsal/delete", post(rehearsal::delete)),
        (Shows, "/staff/{theatre}/films", get(programme::films).post(programme::add_film)),
        (Rooms, "/staff/{theatre}/screens", get(rooms::screens).post(rooms::create)),
        (
            Rooms,
            "/staff/{theatre}/screens/import",
            post(rooms::import).layer(DefaultBodyLimit::max(MAX_ROOM_FORM_BYTES)),
        ),
        (Rooms, "/staff/{theatre}/screens/layout", post(rooms::publish)),
        (Rooms, "/staff/{theatre}/screens/{screen}/house-seats", get(rooms::house_seats).post(rooms::keep_seats)),
        (Rooms, "/staff/{theatre}/layouts/new", get(rooms::draw)),
        (Rooms, "/staff/{theatre}/layouts/{layout}", get(rooms::room)),
        (Rooms, "/staff/{theatre}/layouts/{layout}/edit", get(rooms::edit)),
        (Rooms, "/staff/{theatre}/layouts/{layout}/focus", post(rooms::set_focus)),
        (Prices, "/staff/{theatre}/prices", get(prices::show_page).post(prices::set)),
        (Reports, "/staff/{theatre}/reports", get(reports::page)),
        (Parked, "/staff/{theatre}/parked", get(parked::show_page)),
        (Parked, "/staff/{theatre}/parked/{parked}/{decision}", post(parked::decide)),
        (Unusual, "/staff/{theatre}/unusual", get(unusual::show_page)),
        (Unusual, "/staff/{theatre}/unusual/{flag}/dismiss", post(unusual::dismiss)),
        (Systems, "/staff/{theatre}/systems", get(systems::show_page)),
        (Systems, "/staff/{theatre}/systems/keys", post(systems::make_key)),
        (Systems, "/staff/{theatre}/systems/keys/{key}/revoke", post(systems::revoke_key)),
        (Systems, "/staff/{theatre}/systems/webhooks", post(systems::make_webhook)),
        (Systems, "/staff/{theatre}/systems/webhooks/{endpoint}/secret", post(systems::rotate)),
        (Systems, "/staff/{theatre}/systems/webhooks/{endpoint}/state", post(systems::switch)),
        (Systems, "/staff/{theatre}/systems/webhooks/{endpoint}/deliveries/{delivery}/replay", post(systems::replay)),
        (Team, "/staff/{theatre}/team", get(team::show_page).post(team::change)),
        (Team, "/staff/{theatre}/team/acts", get(team::acts)),
        (Theatre, "/staff/{theatre}/theatre", get(theatre::show_page).post(theatre::change)),
    ]
}

pub(super) fn pages() -> Vec<super::Page> {
    let of_theatre = of_theatre().into_iter().map(|(section, address, handlers)| {
        let is_long = matches!(section, Section::Shows | Section::Rooms | Section::Prices | Section::Theatre);
        let most = if is_long { MAX_LONG_FORM_BYTES } else { MAX_FORM_BYTES };
        let terms = if section == Section::Reports { REPORT } else { NEVER };
        (address, handlers.layer((DefaultBodyLimit::max(most), Extension(section))), terms)
    });
    let of_all = [("/staff", get(entrance), NEVER), ("/staff/theatres", post(theatre::create), NEVER)];
    of_theatre.chain(of_all).collect()
}

async fn zone_of(state: &AppState, theatre: &str) -> Result<Tz, PageError> {
    let found = state.catalogue.theatre(theatre).await?.ok_or(PageError::NotFound)?;
    found.time_zone.parse().map_err(|_| {
        tracing::error!(theatre, zone = found.time_zone, "read a theatre's time zone failed");
        PageError::Fault
    })
}

/// An instant of the API in local time: `2026-11-21T20:15:07`.
fn local_iso(at: &str, zone: Tz) -> String {
    let read = DateTime::parse_from_rfc3339(at).map(|at| at.with_timezone(&Utc));
    read.map_or_else(|_| at.to_owned(), |at| at.with_timezone(&zone).format("%Y-%m-%dT%H:%M:%S").to_string())
}

async fn entrance(State(state): State<AppState>, who: Result<Staff, Problem>) -> SignedInPageResult {
    let staff = signed_in(who, "/staff")?;
    entrance_page(&state, &staff, None).await
}

/// Number of parked effects per theatre, for the given theatres that the caller manages.
async fn parked_in(state: &AppState, staff: &Staff, theatres: &[String]) -> Result<HashMap<String, i64>, sqlx::Error> {
    let may_decide = |theatre: &&String| staff.at(theatre, Section::Parked.roles()).is_ok();
    let managed: Vec<String> = theatres.iter().filter(may_decide).cloned().collect();
    if managed.is_empty() { Ok(HashMap::new()) } else { bookings::parked_counts(&state.pg, &managed).await }
}

/// The caller's theatres; with the refused form of a new theatre, and the reason.
async fn entrance_page(state: &AppState, staff: &Staff, refused: Option<(Form, StaffError)>) -> SignedInPageResult {
    let mut places = Vec::new();
    let theatres = staff.theatres();
    let parked = parked_in(state, staff, &theatres).await?;
    for theatre in theatres {
        if let Some(found) = state.catalogue.theatre(&theatre).await? {
            let parked = parked.get(&theatre).copied().unwrap_or_default();
            places.push(Workplace { roles: staff.roles_at(&theatre), name: found.name, parked, theatre });
        }
    }
    places.sort_by(|one, other| one.name.cmp(&other.name));
    let new = match accounts::require_manager_of_all(state, staff).await {
        Ok(()) => Some(NewTheatre { cities: state.catalogue.cities().await?, key: ids::new_id().to_string(), refused }),
        Err(problem) if problem.code() == Code::NotAllowed => None,
        Err(problem) => return Err(problem.into()),
    };
    Ok(private_page(Entrance { places, new }))
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_section_is_in_the_navigation_and_has_its_page() {
        for &section in Section::VARIANTS {
            let href = section.href("{theatre}");
            assert!(of_theatre().iter().any(|(of, address, _)| *of == section && *address == href), "{section:?}");
        }
        for (section, address, _) in of_theatre() {
            assert!(Section::VARIANTS.contains(&section), "{address} is in no section of the navigation");
        }
    }
}
