//! Forms of bookings at the box office, and of a PIN: each does one act through the API's service, then shows the new state.

use std::collections::HashMap;

use app::staff::pages::box_office::{CounterForm, PinForm, TakeBackForm};
use app::staff::pages::{Field, Refusal};
use axum::extract::{Form, Path, State};
use axum::response::{IntoResponse, Response};
use domain::api::accounts::Password;
use domain::api::box_office::{DayQuery, PinRequest, Reason, RefundRequest};
use domain::seats::SeatIndex;
use uuid::Uuid;

use super::{CounterContext, away, booking_page, day_page, paper, see};
use crate::AppState;
use crate::web::pages::PageError;
use crate::web::pages::staff::{StaffPageResult, StaffResult, hindrance};
use crate::web::pages::{FormResult, PathResult};
use backoffice::box_office;
use catalogue::read_date;
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::{Code, Problem, page_locale};
use identity::accounts::{self, PinIntent};

pub(super) type FormFields = HashMap<String, String>;

/// A field of a form; empty where it is missing.
pub(super) fn field<'a>(fields: &'a FormFields, name: &str) -> &'a str {
    fields.get(name).map_or("", String::as_str)
}

fn password(fields: &FormFields, name: &str) -> Password {
    Password::new(field(fields, name).to_owned())
}

/// The day of the page with the form; today without a valid one.
pub(super) fn day_of(fields: &FormFields) -> DayQuery {
    let date = read_date(fields.get("date").map(String::as_str)).ok().flatten();
    DayQuery { date: date.map(|date| date.to_string()) }
}

/// The intent of a form: its key, bound to its content.
pub(super) fn intent(
    here: &CounterContext,
    fields: &FormFields,
    what: &str,
    body: &impl serde::Serialize,
) -> Result<Intent, Problem> {
    let key = IdempotencyKey::of_form(field(fields, "key"))?;
    Ok(Intent::new(&here.staff.session.owner, key, &format!("form {}/{what}", here.base()), body))
}

/// The page again, with the problem and its status; temporary problems have their own page.
pub(super) fn with_status(problem: Problem, page: Response) -> Response {
    match problem.code() {
        Code::Internal => return PageError::Fault.into_response(),
        Code::DatabaseUnavailable => return PageError::Busy.into_response(),
        _ => {}
    }
    let mut page = page;
    *page.status_mut() = problem.code().describe().0;
    page
}

/// For the others there is no such form.
pub(super) async fn managers(
    state: &AppState,
    who: StaffResult,
    theatre: &str,
) -> Result<CounterContext, super::StaffPageError> {
    let here = CounterContext::of(state, who, theatre).await?;
    if here.is_manager() { Ok(here) } else { Err(PageError::NotFound.into()) }
}

pub(super) async fn set_pin(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    form: FormResult<FormFields>,
) -> StaffPageResult {
    let (Path(theatre), Form(fields)) = (theatre?, form?);
    let here = managers(&state, who, &theatre).await?;
    let request = PinRequest { pin: password(&fields, "pin"), password: password(&fields, "password") };
    let done = match intent(&here, &fields, "pin", &PinIntent::of(&state, &request)) {
        Ok(intent) => accounts::set_pin(&state, &here.staff, &theatre, &request, &intent).await,
        Err(problem) => Err(problem),
    };
    match done {
        Ok(_) => Ok(see(&here.day(&day_of(&fields)))),
        Err(problem) => {
            let form = refused_pin(&problem);
            let marked = form.is_refused().then(|| app::say!(in page_locale::language(), "field.refused").into());
            let trouble = marked.unwrap_or_else(|| hindrance(&problem));
            let refused = Some(CounterForm::Pin(form));
            let page = day_page(&state, here, day_of(&fields), refused, Some(trouble)).await?;
            Ok(with_status(problem, page))
        }
    }
}

/// The problem of a new PIN, beside its field. The problems' own messages are about signing in.
fn refused_pin(problem: &Problem) -> PinForm {
    let language = page_locale::language();
    let refused = |words| Field::refused("", Refusal::Message(words));
    match problem.code() {
        Code::PasswordUnusable => {
            PinForm { pin: refused(app::say!(in language, "box_office.pin_hint")), ..PinForm::default() }
        }
        Code::LoginFailed => {
            PinForm { password: refused(app::say!(in language, "box_office.wrong_password")), ..PinForm::default() }
        }
        _ => PinForm::default(),
    }
}

pub(super) async fn booking(
    State(state): State<AppState>,
    who: StaffResult,
    path: PathResult<(String, Uuid, String)>,
    form: FormResult<FormFields>,
) -> StaffPageResult {
    let (Path((theatre, booking, act)), Form(fields)) = (path?, form?);
    let here = CounterContext::of(&state, who, &theatre).await?;
    if act == "tickets" {
        return print(&state, here, booking, &fields).await;
    }
    match booking_act(&state, &here, booking, &act, &fields).await {
        Ok(_) => Ok(see(&format!("{}/bookings/{booking}", here.base()))),
        Err(problem) if problem.code() == Code::NotFound => Err(PageError::NotFound.into()),
        Err(problem) => {
            let page = booking_page(&state, here, booking, typed(act, &fields), Some(hindrance(&problem))).await?;
            Ok(with_status(problem, page))
        }
    }
}

/// The input, to be shown again; except for a PIN.
fn typed(act: String, fields: &FormFields) -> TakeBackForm {
    TakeBackForm {
        reason: Field::kept(field(fields, "reason")),
        seats: seats(fields).ok().flatten().unwrap_or_default(),
        manager: field(fields, "manager").to_owned(),
        act,
    }
}

async fn booking_act(
    state: &AppState,
    here: &CounterContext,
    booking: Uuid,
    act: &str,
    fields: &FormFields,
) -> Result<Answer, Problem> {
    let counter = here.counter();
    let what = format!("bookings/{booking}/{act}");
    let request = Reason { reason: field(fields, "reason").to_owned() };
    match act {
        "undo" => box_office::undo(state, counter, booking, &request, &intent(here, fields, &what, &request)?).await,
        "pay-out" => {
            box_office::pay_out(state, counter, booking, &request, &intent(here, fields, &what, &request)?).await
        }
        "refund" => {
            let request = RefundRequest {
                seats: seats(fields)?,
                reason: request.reason,
                manager: field(fields, "manager")
                    .parse()
                    .map_err(|_| Problem::new(Code::Malformed, "Who stands for it?"))?,
                pin: password(fields, "pin"),
            };
            let said = (&request.seats, &request.reason, request.manager);
            box_office::refund(state, counter, booking, &request, &intent(here, fields, &what, &said)?).await
        }
        _ => Err(Problem::not_found("act")),
    }
}

/// The seats whose boxes are ticked; none ticked means all of the booking.
fn seats(fields: &FormFields) -> Result<Option<Vec<SeatIndex>>, Problem> {
    let unreadable = |_: std::num::ParseIntError| Problem::new(Code::Malformed, "A seat is a number.");
    let ticked = fields
        .keys()
        .filter_map(|name| name.strip_prefix("seat-"))
        .map(|seat| seat.parse::<SeatIndex>().map_err(unreadable));
    let mut seats: Vec<SeatIndex> = ticked.collect::<Result<_, _>>()?;
    seats.sort_unstable();
    Ok((!seats.is_empty()).then_some(seats))
}

async fn print(state: &AppState, here: CounterContext, booking: Uuid, fields: &FormFields) -> StaffPageResult {
    let printed = match intent(&here, fields, &format!("bookings/{booking}/tickets"), &()) {
        Ok(intent) => box_office::print(state, here.counter(), booking, &intent).await,
        Err(problem) => Err(problem),
    };
    match printed {
        Ok(answer) => {
            let list = serde_json::from_slice(answer.body()).map_err(|_| PageError::Fault)?;
            let found = box_office::by_id(state, here.counter(), booking).await.map_err(away)?;
            paper(state, here, found, list).await
        }
        Err(problem) if problem.code() == Code::NotFound => Err(PageError::NotFound.into()),
        Err(problem) => {
            let page = booking_page(state, here, booking, TakeBackForm::default(), Some(hindrance(&problem))).await?;
            Ok(with_status(problem, page))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_to_its_day() {
        let of = |date: &str| day_of(&[("date".to_owned(), date.to_owned())].into()).date;
        assert_eq!(of("2026-11-28").as_deref(), Some("2026-11-28"));
        for none in ["", "tomorrow", "2026-11-28&x=1"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(day_of(&FormFields::new()), DayQuery::default());
    }

    #[test]
    fn no_ticked_seat_means_the_whole_booking() {
        let of = |names: &[&str]| {
            let fields: FormFields = names.iter().map(|name| ((*name).to_owned(), "on".to_owned())).collect();
            seats(&fields).map_err(|problem| problem.code())
        };
        assert_eq!(of(&["key", "reason"]), Ok(None));
        assert_eq!(of(&["seat-12", "key", "seat-3"]), Ok(Some(vec![3, 12])));
        assert_eq!(of(&["seat-x"]), Err(Code::Malformed));
    }
}
