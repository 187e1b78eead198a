//! Forms at the box office, of bookings, tills, the day and a PIN. Each performs one action of the API's service and then
//! shows the new state. A refused form keeps its input, with each error beside its field.

use std::collections::BTreeMap;

use app::staff::pages::box_office::ALL_TICKETS;
use app::staff::pages::{Form, REASON, Refusal};
use domain::api::accounts::Password;
use domain::api::box_office::{
    CashUp, CashUpFor, DayClose, DayQuery, DropRequest, OpenTill, PayOutRequest, PinRequest, Reason, RefundRequest,
};
use domain::money::Currency;
use domain::seats::SeatIndex;
use domain::till::MAX_COUNTED_MINOR;
use language::say;
use uuid::Uuid;

use super::super::super::{PageError, SignedInPageError, SignedInPageResult, words};
use super::super::visit::{SentForm, StaffVisit, VisitOf, malformed, marked};
use super::{booking_page, counter, day_page, is_manager, print_tickets_page};
use backoffice::box_office;
use catalogue::read_date;
use http::idempotency::Answer;
use http::{Code, Problem, page_locale};
use identity::accounts::{self, PinIntent};

fn password(form: &Form, name: &str) -> Password {
    Password::new(form.text(name))
}

/// The day of the page with the form; today without a valid one.
fn day_of(form: &Form) -> DayQuery {
    let date = read_date(form.filled("date").as_deref()).ok().flatten();
    DayQuery { date: date.map(|date| date.to_string()) }
}

/// Redirects to the day of the page from which a form was sent.
fn redirect_to_day(visit: &StaffVisit, form: &Form) -> SignedInPageResult {
    let day = day_of(form).date.map(|date| format!("?date={date}")).unwrap_or_default();
    Ok(visit.redirect_to(&format!("box-office{day}")))
}

/// Returns the visit of a manager; 404 for others, whose page has no such form.
fn require_manager<P>(visit: StaffVisit<P>) -> Result<StaffVisit<P>, SignedInPageError> {
    if is_manager(&visit) { Ok(visit) } else { Err(PageError::NotFound.into()) }
}

pub(in super::super) async fn set_pin(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let visit = require_manager(visit)?;
    let request = PinRequest { pin: password(&form, "pin"), password: password(&form, "password") };
    let done = async {
        let intent = visit.intent(&form, &PinIntent::of(&visit.state, &request))?;
        accounts::set_pin(&visit.state, &visit.staff, &visit.desk.theatre, &request, &intent).await
    };
    let Err(problem) = done.await else { return redirect_to_day(&visit, &form) };
    let refused = refused_pin(&problem);
    let visit = visit.solvable(&problem)?.fail(&problem, refused.is_refused().then(marked));
    day_page(visit, day_of(&form), refused).await
}

/// The problem of a new PIN, beside its field. The problems' own messages are about signing in. PIN and password are never
/// sent back.
fn refused_pin(problem: &Problem) -> Form {
    let (mut form, language) = (Form::default().named("pin"), page_locale::language());
    let beside = match problem.code() {
        Code::PasswordUnusable => Some(("pin", say!(in language, "box_office.pin_hint"))),
        Code::LoginFailed => Some(("password", say!(in language, "box_office.wrong_password"))),
        _ => None,
    };
    if let Some((field, words)) = beside {
        form.refuse(field, Refusal::Message(words));
    }
    form
}

pub(in super::super) async fn booking(
    visit: StaffVisit<(String, Uuid, String)>,
    SentForm(mut form): SentForm,
) -> SignedInPageResult {
    let (visit, (_, booking, act)) = visit.split();
    if act == "tickets" {
        return print(visit, booking, form).await;
    }
    if act == "refund" && !has_ticket_choice(&form) {
        let message = say!(in page_locale::language(), "box_office.choose_tickets");
        form.refuse(ALL_TICKETS, Refusal::Message(message));
        return booking_page(visit.refuse_fields(), booking, form.named(act)).await;
    }
    match booking_act(&visit, booking, &act, &form).await {
        Ok(_) => {
            // The form of a pay-out has said already which money to hand over.
            let done = if act == "pay-out" { "" } else { "?done=true" };
            Ok(visit.redirect_to(&format!("box-office/bookings/{booking}{done}")))
        }
        Err(problem) if problem.code() == Code::NotFound => Err(PageError::NotFound.into()),
        Err(problem) => booking_page(visit.refuse(&problem)?, booking, form.named(act)).await,
    }
}

async fn booking_act(visit: &StaffVisit, booking: Uuid, act: &str, form: &Form) -> Result<Answer, Problem> {
    let (state, counter) = (&visit.state, counter(visit));
    match act {
        "undo" => {
            // The buyer sees the reason in the history of the booking.
            let default_reason = || say!(in page_locale::language(), "box_office.undo_reason");
            let request = Reason { reason: form.filled(REASON).unwrap_or_else(default_reason) };
            box_office::undo(state, counter, booking, &request, &visit.intent(form, &request)?).await
        }
        "pay-out" => {
            let request = PayOutRequest {
                reason: form.reason(),
                manager: form.get("manager").parse().ok(),
                pin: form.filled("pin").map(Password::new),
            };
            let intent = visit.intent(form, &request.without_pin())?;
            box_office::pay_out(state, counter, booking, &request, &intent).await
        }
        "refund" => {
            let ticked = ticked_seats(form)?;
            let (seats, labels) = (!ticked.is_empty()).then(|| ticked.into_iter().unzip()).unzip();
            let request = RefundRequest {
                seats,
                labels,
                reason: form.text(REASON),
                manager: form.get("manager").parse().map_err(|_| malformed("Who stands for it?"))?,
                pin: password(form, "pin"),
            };
            let body = (&request.seats, &request.labels, &request.reason, request.manager);
            box_office::refund(state, counter, booking, &request, &visit.intent(form, &body)?).await
        }
        _ => Err(Problem::not_found("act")),
    }
}

/// Returns true if a refund form chooses either all tickets or single seats.
fn has_ticket_choice(form: &Form) -> bool {
    form.is_ticked(ALL_TICKETS) != form.with_prefix("seat-").next().is_some()
}

/// The seats whose boxes are ticked, with their labels on the page; none means all of the booking.
fn ticked_seats(form: &Form) -> Result<BTreeMap<SeatIndex, String>, Problem> {
    let ticked = form.with_prefix("seat-").map(|(seat, label)| match seat.parse::<SeatIndex>() {
        Ok(seat) => Ok((seat, label.to_owned())),
        Err(_) => Err(malformed("A seat is a number.")),
    });
    ticked.collect()
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
            print_tickets_page(visit, found, list).await
        }
        Err(problem) if problem.code() == Code::NotFound => Err(PageError::NotFound.into()),
        Err(problem) => booking_page(visit.refuse(&problem)?, booking, Form::default()).await,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TillAct {
    Open,
    Drop,
    CashUp,
    /// A manager counts another seller's till.
    CashUpFor(Uuid),
}

impl TillAct {
    fn parse(path: &str) -> Option<Self> {
        match path {
            "open" => Some(Self::Open),
            "drop" => Some(Self::Drop),
            "cash-up" => Some(Self::CashUp),
            _ => None,
        }
    }

    /// The name of its form: the address below the box office.
    fn form_name(self) -> String {
        match self {
            Self::Open => "till/open".to_owned(),
            Self::Drop => "till/drop".to_owned(),
            Self::CashUp => "till/cash-up".to_owned(),
            Self::CashUpFor(till) => format!("tills/{till}/cash-up"),
        }
    }
}

pub(in super::super) async fn till(visit: VisitOf<String>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, act)) = visit.split();
    let act = TillAct::parse(&act).ok_or(PageError::NotFound)?;
    submit_till_form(visit, act, form).await
}

pub(in super::super) async fn count_for(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, till)) = require_manager(visit)?.split();
    submit_till_form(visit, TillAct::CashUpFor(till), form).await
}

async fn submit_till_form(visit: StaffVisit, act: TillAct, form: Form) -> SignedInPageResult {
    let currency = counter(&visit).currency(&visit.state).await?;
    let mut form = form.named(act.form_name());
    let done = match read(act, &mut form, currency) {
        Some(minor) if !form.is_refused() => till_act(&visit, act, minor, &form).await,
        _ => Err(malformed("Some fields cannot be read.")),
    };
    after(visit, Some(act), form, done).await
}

/// Checks the form, and returns its sum in minor units.
fn read(act: TillAct, form: &mut Form, currency: Currency) -> Option<i64> {
    // A drop of 0 is refused.
    let least = i64::from(act == TillAct::Drop);
    let may_omit_reason = !matches!(act, TillAct::CashUpFor(_)) && form.filled(REASON).is_none();
    if !may_omit_reason {
        form.check_reason();
    }
    form.amount("amount", currency, least..=MAX_COUNTED_MINOR)
}

async fn till_act(visit: &StaffVisit, act: TillAct, minor: i64, form: &Form) -> Result<Answer, Problem> {
    let (state, counter) = (&visit.state, counter(visit));
    match act {
        TillAct::Open => {
            let request = OpenTill { float_minor: minor };
            box_office::open_till(state, counter, request, &visit.intent(form, &request)?).await
        }
        TillAct::Drop => {
            let request = DropRequest { amount_minor: minor, reason: form.reason() };
            box_office::drop_cash(state, counter, &request, &visit.intent(form, &request)?).await
        }
        TillAct::CashUp => {
            let request = CashUp { counted_minor: minor, reason: form.text(REASON) };
            box_office::cash_up(state, counter, &request, &visit.intent(form, &request)?).await
        }
        TillAct::CashUpFor(till) => {
            let request = CashUpFor { counted_minor: minor, reason: form.text(REASON) };
            box_office::cash_up_for(state, counter, till, &request, &visit.intent(form, &request)?).await
        }
    }
}

pub(in super::super) async fn close_day(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let visit = require_manager(visit)?;
    let mut form = form.named("day-close");
    if form.filled(REASON).is_some() {
        form.check_reason();
    }
    let request = DayClose { reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        box_office::close_day(&visit.state, counter(&visit), &request, &intent).await
    }
    .await;
    after(visit, None, form, done).await
}

/// Redirects after a success; otherwise shows the page with the refused form and its errors.
async fn after(
    visit: StaffVisit,
    act: Option<TillAct>,
    mut form: Form,
    done: Result<Answer, Problem>,
) -> SignedInPageResult {
    let Err(problem) = done else { return redirect_to_day(&visit, &form) };
    if problem.code() == Code::NotFound {
        return Err(PageError::NotFound.into());
    }
    // Only the till knows whether the sum fits: its message is shown beside the amount.
    if matches!(problem.code(), Code::TillShort | Code::TillDiffers) {
        form.refuse("amount", Refusal::Message(words(&problem)));
    }
    let above = match (act, problem.code()) {
        _ if form.is_refused() => Some(marked()),
        // The general message of this problem is about bookings.
        (Some(TillAct::CashUpFor(_)), Code::WrongState) => {
            Some(say!(in page_locale::language(), "box_office.counted_already"))
        }
        _ => None,
    };
    let visit = visit.solvable(&problem)?.fail(&problem, above);
    day_page(visit, day_of(&form), form).await
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
    fn ticked_seats_have_the_labels_of_the_page() {
        let of = |fields: &[(&'static str, &str)]| {
            ticked_seats(&Form::new(fields.iter().copied())).map_err(|problem| problem.code())
        };
        assert_eq!(of(&[("key", "k"), ("reason", "r")]), Ok(BTreeMap::new()));
        let ticked = BTreeMap::from([(3, "A4".to_owned()), (12, "B3".to_owned())]);
        assert_eq!(of(&[("seat-12", "B3"), ("key", "k"), ("seat-3", "A4")]), Ok(ticked));
        assert_eq!(of(&[("seat-x", "A1")]), Err(Code::Malformed));
    }

    #[test]
    fn refund_needs_a_choice_between_all_tickets_and_single_seats() {
        let of = |fields: &[(&'static str, &str)]| has_ticket_choice(&Form::new(fields.iter().copied()));
        assert!(of(&[("key", "k"), (ALL_TICKETS, "true")]));
        assert!(of(&[("seat-12", "B3"), ("seat-3", "A4")]));
        assert!(!of(&[("key", "k"), ("reason", "r")]), "no choice is not all");
        assert!(!of(&[(ALL_TICKETS, "true"), ("seat-3", "A4")]), "both");
    }

    fn typed(act: TillAct, amount: &str, reason: &str) -> (Form, Option<i64>) {
        let mut form = Form::new([("amount", amount), (REASON, reason)]);
        let minor = read(act, &mut form, Currency::parse("EUR").expect("a code"));
        (form, minor)
    }

    #[test]
    fn the_input_stays_and_each_problem_is_beside_its_field() {
        let refused = |form: &Form| (form.refusal("amount").is_some(), form.refusal(REASON).is_some());
        for (amount, is_refused) in [("100", false), ("0", false), ("a lot", true), ("-1", true), ("1000000.01", true)]
        {
            let (form, minor) = typed(TillAct::Open, amount, "");
            assert_eq!((form.get("amount"), refused(&form)), (amount, (is_refused, false)));
            assert_eq!(minor.is_none(), is_refused, "{amount}");
        }
        assert_eq!(refused(&typed(TillAct::Drop, "0", " ").0), (true, false), "nothing is no drop");
        assert_eq!(refused(&typed(TillAct::Drop, "0.01", "").0), (false, false));
        assert_eq!(
            refused(&typed(TillAct::CashUpFor(Uuid::nil()), "99", " ").0),
            (false, true),
            "another seller's till, with a reason"
        );
        assert_eq!(refused(&typed(TillAct::CashUp, "99", &"x".repeat(301)).0), (false, true));
    }
}
