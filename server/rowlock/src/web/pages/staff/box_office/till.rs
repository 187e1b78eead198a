//! The forms of a till and of the day. What was typed and refused is shown again, with what is wrong beside its field.

use app::staff::pages::{Form, REASON, Refusal};
use domain::api::box_office::{CashUp, CashUpFor, DayClose, DropRequest, OpenTill};
use domain::money::Currency;
use domain::till::MAX_COUNTED_MINOR;
use uuid::Uuid;

use super::super::super::{PageError, SignedInPageResult, words};
use super::super::visit::{SentForm, StaffVisit, VisitOf, malformed, marked};
use super::forms::{day_of, manager, see_day};
use super::{counter, day_page};
use backoffice::box_office;
use http::idempotency::Answer;
use http::{Code, Problem, page_locale};

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
    sent(visit, act, form).await
}

pub(in super::super) async fn count_for(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, till)) = manager(visit)?.split();
    sent(visit, TillAct::CashUpFor(till), form).await
}

async fn sent(visit: StaffVisit, act: TillAct, form: Form) -> SignedInPageResult {
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
    // Nothing is no drop.
    let least = i64::from(act == TillAct::Drop);
    let may_be_silent = matches!(act, TillAct::Open | TillAct::CashUp) && form.filled(REASON).is_none();
    if !may_be_silent {
        form.check_reason();
    }
    form.amount("amount", currency, least..=MAX_COUNTED_MINOR)
}

async fn till_act(visit: &StaffVisit, act: TillAct, minor: i64, form: &Form) -> Result<Answer, Problem> {
    let (state, counter, reason) = (&visit.state, counter(visit), form.text(REASON));
    match act {
        TillAct::Open => {
            let request = OpenTill { float_minor: minor };
            box_office::open_till(state, counter, request, &visit.intent(form, &request)?).await
        }
        TillAct::Drop => {
            let request = DropRequest { amount_minor: minor, reason };
            box_office::drop_cash(state, counter, &request, &visit.intent(form, &request)?).await
        }
        TillAct::CashUp => {
            let request = CashUp { counted_minor: minor, reason };
            box_office::cash_up(state, counter, &request, &visit.intent(form, &request)?).await
        }
        TillAct::CashUpFor(till) => {
            let request = CashUpFor { counted_minor: minor, reason };
            box_office::cash_up_for(state, counter, till, &request, &visit.intent(form, &request)?).await
        }
    }
}

pub(in super::super) async fn close_day(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let visit = manager(visit)?;
    let request = DayClose { reason: form.text(REASON) };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        box_office::close_day(&visit.state, counter(&visit), &request, &intent).await
    }
    .await;
    after(visit, None, form.named("day-close").with_checked_reason(), done).await
}

/// The way on; or the page once more, with what was typed and what is wrong with it.
async fn after(
    visit: StaffVisit,
    act: Option<TillAct>,
    mut form: Form,
    done: Result<Answer, Problem>,
) -> SignedInPageResult {
    let Err(problem) = done else { return see_day(&visit, &form) };
    if problem.code() == Code::NotFound {
        return Err(PageError::NotFound.into());
    }
    // What is wrong with the sum only the till can say.
    if matches!(problem.code(), Code::TillShort | Code::TillDiffers) {
        form.refuse("amount", Refusal::Message(words(&problem)));
    }
    let above = match (act, problem.code()) {
        _ if form.is_refused() => Some(marked()),
        // The problem's own words are about bookings.
        (Some(TillAct::CashUpFor(_)), Code::WrongState) => {
            Some(app::say!(in page_locale::language(), "box_office.counted_already"))
        }
        _ => None,
    };
    let visit = visit.solvable(&problem)?.fail(&problem, above);
    day_page(visit, day_of(&form), form).await
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(refused(&typed(TillAct::Drop, "0", " ").0), (true, true), "nothing, for no reason");
        assert_eq!(refused(&typed(TillAct::Drop, "0.01", "Full.").0), (false, false));
        assert_eq!(
            refused(&typed(TillAct::CashUpFor(Uuid::nil()), "99", " ").0),
            (false, true),
            "another seller's till, with a reason"
        );
        assert_eq!(refused(&typed(TillAct::CashUp, "99", &"x".repeat(301)).0), (false, true));
    }
}
