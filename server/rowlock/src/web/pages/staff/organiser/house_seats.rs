//! The seats of a screen that the house keeps in every show planned there.

use std::collections::BTreeSet;

use app::staff::islands::house_seats::HouseRow;
use app::staff::pages::organiser::{HouseChoice, HouseSeatsPage, Trouble};
use app::staff::pages::{Desk, Field, Section};
use axum::extract::{Form, Path, Query, State};
use domain::api::organiser::ScreenHouseSeatsRequest;
use domain::layout::Layout;
use domain::seats::SeatIndex;
use uuid::Uuid;

use super::super::{StaffPageResult, StaffResult, desk};
use super::rooms::preview_of;
use super::{
    OrganiserQuery, Preview, StaffPageError, intent, marked, new_key, page_locale, page_trouble, passing_or_fault,
    private, see, trouble, with_status,
};
use crate::AppState;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use backoffice::organiser::{self, LayoutDetails, OrganiserAction};
use http::{Code, Problem};

pub(super) async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    screen: PathResult<(String, String)>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let Path((theatre, screen)) = screen?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    page(&state, desk, &screen, asked.done, HouseChoice::default(), None).await
}

async fn page(
    state: &AppState,
    desk: Desk,
    screen: &str,
    done: bool,
    choice: HouseChoice,
    trouble: Option<Trouble>,
) -> StaffPageResult {
    let standing = organiser::standing_seats(state, &desk.theatre, screen).await.map_err(passing_or_fault)?;
    let LayoutDetails { layout, .. } =
        organiser::room(state, &desk.theatre, standing.layout).await.map_err(passing_or_fault)?;
    let Preview { plan, .. } = preview_of(state, &desk.theatre, standing.layout, &layout).await?;
    let rows = plan.sections.into_iter().filter(|_| !plan.overview).flat_map(|section| {
        let name = [section.name.as_str(), section.part.as_str()].join(" ").trim().to_owned();
        section.rows.into_iter().map(move |row| (name.clone(), row))
    });
    let rows =
        rows.map(|(section, view)| HouseRow { section, labels: labels(&layout, view.first, view.numbers.len()), view });
    let rows: Vec<HouseRow> = rows.collect();
    let choice = if rows.is_empty() { written_down(choice) } else { choice };
    Ok(private(HouseSeatsPage { desk, standing, rows, choice, key: new_key(), done, trouble }))
}

/// For a room that is too large for boxes: the ticked seats as text. The screen has got such a room meanwhile.
fn written_down(mut choice: HouseChoice) -> HouseChoice {
    let names = std::iter::once(choice.names).filter(|names| !names.trim().is_empty());
    choice.names = names.chain(std::mem::take(&mut choice.ticked)).collect::<Vec<_>>().join(", ");
    choice
}

fn labels(room: &Layout, first: SeatIndex, count: usize) -> Vec<String> {
    (first..).take(count).map(|seat| room.label(seat).unwrap_or_default()).collect()
}

/// The form: a box for each ticked seat, and the other fields.
struct HouseSeatFields {
    key: String,
    layout: Uuid,
    kept: bool,
    choice: HouseChoice,
}

impl HouseSeatFields {
    fn read(fields: Vec<(String, String)>) -> Result<Self, Problem> {
        let (mut key, mut layout, mut kept, mut choice) = (String::new(), None, None, HouseChoice::default());
        for (name, value) in fields {
            match name.as_str() {
                "key" => key = value,
                "layout" => layout = value.parse().ok(),
                "kept" => kept = value.parse().ok(),
                "seat" => choice.ticked.push(value),
                "names" => choice.names = value,
                "reason" => choice.reason = Field::reason(value),
                "forgets" => choice.forgets = true,
                _ => {}
            }
        }
        match (layout, kept) {
            (Some(layout), Some(kept)) => Ok(Self { key, layout, kept, choice }),
            _ => Err(Problem::new(Code::Malformed, "Send the form as it is.")),
        }
    }

    /// All chosen seats, each once: a seat may be both ticked and written.
    fn request(&self) -> ScreenHouseSeatsRequest {
        let written = self.choice.names.split(['\n', ',', ';']).map(str::trim).filter(|name| !name.is_empty());
        let seats: BTreeSet<&str> = self.choice.ticked.iter().map(String::as_str).chain(written).collect();
        ScreenHouseSeatsRequest {
            layout: self.layout,
            seats: seats.into_iter().map(str::to_owned).collect(),
            kept: self.kept,
            reason: self.choice.reason.value.clone(),
        }
    }
}

pub(super) async fn keep(
    State(state): State<AppState>,
    who: StaffResult,
    screen: PathResult<(String, String)>,
    form: FormResult<Vec<(String, String)>>,
) -> StaffPageResult {
    let Path((theatre, screen)) = screen?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(fields) = form?;
    let sent = match HouseSeatFields::read(fields) {
        Ok(sent) => sent,
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            let page = page(&state, desk, &screen, false, HouseChoice::default(), Some(trouble)).await?;
            return Ok(with_status(status, page));
        }
    };
    let request = sent.request();
    let path = format!("/staff/{theatre}/screens/{screen}/house-seats");
    let done = async {
        let intent = intent(&staff, &sent.key, &format!("form {path}"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::keep_standing_seats(&state, &act, &screen, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("{path}?done=true"))),
        Err(problem) => {
            let mut choice = sent.choice;
            if !choice.forgets && matches!(problem.code(), Code::UnknownSeat | Code::WrongState) {
                choice.unknown = unknown_by_now(&state, &theatre, &screen, &request.seats).await?;
            }
            let (status, trouble) = match problem.code() {
                _ if choice.reason.is_refused() => marked(),
                Code::WrongState => {
                    page_trouble(problem.code().describe().0, app::say!(in page_locale::language(), "house.other_room"))
                }
                _ => trouble(problem)?,
            };
            Ok(with_status(status, page(&state, desk, &screen, false, choice, Some(trouble)).await?))
        }
    }
}

/// Which of these the room has not that the screen has by now: it may have got another since they were chosen.
async fn unknown_by_now(
    state: &AppState,
    theatre: &str,
    screen: &str,
    seats: &[String],
) -> Result<Vec<String>, StaffPageError> {
    let standing = organiser::standing_seats(state, theatre, screen).await.map_err(passing_or_fault)?;
    let unknown = organiser::unknown_seats(state, theatre, standing.layout, seats).await;
    Ok(unknown.map_err(passing_or_fault)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_both_ticked_and_written_is_chosen_once() {
        let fields = [
            ("key", "k"),
            ("layout", "00000000-0000-0000-0000-000000000007"),
            ("seat", "A2"),
            ("seat", "Circle, left B1"),
            ("names", "A1, A2;\r\nB 3 ,"),
            ("reason", "Press"),
            ("kept", "true"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let request = HouseSeatFields::read(fields.clone()).map(|sent| sent.request()).expect("it can be read");
        assert_eq!(request.seats, ["A1", "A2", "B 3", "Circle, left B1"]);
        assert!(request.kept && request.layout.as_u128() == 7);
        assert!(HouseSeatFields::read(fields[2..].to_vec()).is_err(), "of which room?");
    }
}
