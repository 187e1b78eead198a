//! Forms of bookings at the box office, and of a PIN: each does one act through the API's service, then shows the new state.

use app::staff::pages::{Form, REASON, Refusal};
use domain::api::accounts::Password;
use domain::api::box_office::{DayQuery, PinRequest, Reason, RefundRequest};
use domain::seats::SeatIndex;
use uuid::Uuid;

use super::super::super::{PageError, SignedInPageError, SignedInPageResult};
use super::super::visit::{SentForm, StaffVisit, malformed, marked};
use super::{booking_page, counter, day_page, is_manager, paper};
use backoffice::box_office;
use catalogue::read_date;
use http::idempotency::Answer;
use http::{Code, Problem, page_locale};
use identity::accounts::{self, PinIntent};

fn password(form: &Form, name: &str) -> Password {
    Password::new(form.text(name))
}

/// The day of the page with the form; today without a valid one.
pub(super) fn day_of(form: &Form) -> DayQuery {
    let date = read_date(form.filled("date").as_deref()).ok().flatten();
    DayQuery { date: date.map(|date| date.to_string()) }
}

/// Redirects to the day of the page from which a form was sent.
pub(super) fn see_day(visit: &StaffVisit, form: &Form) -> SignedInPageResult {
    let day = day_of(form).date.map(|date| format!("?date={date}")).unwrap_or_default();
    Ok(visit.see(&format!("box-office{day}")))
}

/// For the others there is no such form.
pub(super) fn manager<P>(visit: StaffVisit<P>) -> Result<StaffVisit<P>, SignedInPageError> {
    if is_manager(&visit) { Ok(visit) } else { Err(PageError::NotFound.into()) }
}

pub(in super::super) async fn set_pin(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let visit = manager(visit)?;
    let request = PinRequest { pin: password(&form, "pin"), password: password(&form, "password") };
    let done = async {
        let intent = visit.intent(&form, &PinIntent::of(&visit.state, &request))?;
        accounts::set_pin(&visit.state, &visit.staff, &visit.desk.theatre, &request, &intent).await
    };
    let Err(problem) = done.await else { return see_day(&visit, &form) };
    let refused = refused_pin(&problem);
    let visit = visit.solvable(&problem)?.fail(&problem, refused.is_refused().then(marked));
    day_page(visit, day_of(&form), refused).await
}

/// The problem of a new PIN, beside its field. The problems' own messages are about signing in. PIN and password are never
/// sent back.
fn refused_pin(problem: &Problem) -> Form {
    let (mut form, language) = (Form::default().named("pin"), page_locale::language());
    let beside = match problem.code() {
        Code::PasswordUnusable => Some(("pin", app::say!(in language, "box_office.pin_hint"))),
        Code::LoginFailed => Some(("password", app::say!(in language, "box_office.wrong_password"))),
        _ => None,
    };
    if let Some((field, words)) = beside {
        form.refuse(field, Refusal::Message(words));
    }
    form
}

pub(in super::super) async fn booking(
    visit: StaffVisit<(String, Uuid, String)>,
    SentForm(form): SentForm,
) -> SignedInPageResult {
    let (visit, (_, booking, act)) = visit.split();
    if act == "tickets" {
        return print(visit, booking, form).await;
    }
    match booking_act(&visit, booking, &act, &form).await {
        Ok(_) => Ok(visit.see(&format!("box-office/bookings/{booking}"))),
        Err(problem) if problem.code() == Code::NotFound => Err(PageError::NotFound.into()),
        Err(problem) => booking_page(visit.refuse(&problem)?, booking, form.named(act)).await,
    }
}

async fn booking_act(visit: &StaffVisit, booking: Uuid, act: &str, form: &Form) -> Result<Answer, Problem> {
    let (state, counter, request) = (&visit.state, counter(visit), Reason { reason: form.text(REASON) });
    match act {
        "undo" => box_office::undo(state, counter, booking, &request, &visit.intent(form, &request)?).await,
        "pay-out" => box_office::pay_out(state, counter, booking, &request, &visit.intent(form, &request)?).await,
        "refund" => {
            let request = RefundRequest {
                seats: seats(form)?,
                reason: request.reason,
                manager: form.get("manager").parse().map_err(|_| malformed("Who stands for it?"))?,
                pin: password(form, "pin"),
            };
            let said = (&request.seats, &request.reason, request.manager);
            box_office::refund(state, counter, booking, &request, &visit.intent(form, &said)?).await
        }
        _ => Err(Problem::not_found("act")),
    }
}

/// The seats whose boxes are ticked; none ticked means all of the booking.
fn seats(form: &Form) -> Result<Option<Vec<SeatIndex>>, Problem> {
    let ticked = form
        .with_prefix("seat-")
        .map(|(seat, _)| seat.parse::<SeatIndex>().map_err(|_| malformed("A seat is a number.")));
    let mut seats: Vec<SeatIndex> = ticked.collect::<Result<_, _>>()?;
    seats.sort_unstable();
    Ok((!seats.is_empty()).then_some(seats))
}

async fn print(visit: StaffVisit, booking: Uuid, form: Form) -> SignedInPageResult {
    let printed = async {
        let intent = visit.intent(&form, &())?;
        box_office::print(&visit.state, counter(&visit), booking, &intent).await
    };
    match printed.await {
        Ok(answer) => {
            let list = serde_json::from_slice(answer.body()).map_err(|_| PageError::Fault)?;
            let found = box_office::by_id(&visit.state, counter(&visit), booking).await?;
            paper(visit, found, list).await
        }
        Err(problem) if problem.code() == Code::NotFound => Err(PageError::NotFound.into()),
        Err(problem) => booking_page(visit.refuse(&problem)?, booking, Form::default()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_to_its_day() {
        let of = |date: &str| day_of(&Form::new([("date", date)])).date;
        assert_eq!(of("2026-11-28").as_deref(), Some("2026-11-28"));
        for none in ["", "tomorrow", "2026-11-28&x=1"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(day_of(&Form::default()), DayQuery::default());
    }

    #[test]
    fn no_ticked_seat_means_the_whole_booking() {
        let of = |names: &[&str]| {
            seats(&Form::new(names.iter().map(|name| (*name, "on")))).map_err(|problem| problem.code())
        };
        assert_eq!(of(&["key", "reason"]), Ok(None));
        assert_eq!(of(&["seat-12", "key", "seat-3"]), Ok(Some(vec![3, 12])));
        assert_eq!(of(&["seat-x"]), Err(Code::Malformed));
    }
}
