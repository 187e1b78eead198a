//! The forms of a till and of the day. What was typed and refused is shown again, with what is wrong beside its field.

use app::staff::pages::box_office::{CounterForm, TillAct, TillForm};
use app::staff::pages::{Field, Refusal};
use axum::extract::{Form, Path, State};
use domain::api::box_office::{CashUp, CashUpFor, DayClose, DayQuery, DropRequest, OpenTill};
use domain::money::{Currency, Money};
use domain::till::{MAX_COUNTED_MINOR, parse_amount};
use uuid::Uuid;

use super::forms::{FormFields, day_of, field, intent, managers, with_status};
use super::{CounterContext, away, day_page, see};
use crate::AppState;
use crate::web::pages::staff::{StaffPageResult, StaffResult, hindrance};
use crate::web::pages::{FormResult, PathResult};
use crate::web::pages::{PageError, words};
use backoffice::box_office;
use http::idempotency::Answer;
use http::{Code, Problem, page_locale};

/// The act of a path.
fn act_of(path: &str) -> Option<TillAct> {
    match path {
        "open" => Some(TillAct::Open),
        "drop" => Some(TillAct::Drop),
        "cash-up" => Some(TillAct::CashUp),
        _ => None,
    }
}

pub(super) async fn till(
    State(state): State<AppState>,
    who: StaffResult,
    path: PathResult<(String, String)>,
    form: FormResult<FormFields>,
) -> StaffPageResult {
    let (Path((theatre, act)), Form(fields)) = (path?, form?);
    let here = CounterContext::of(&state, who, &theatre).await?;
    let act = act_of(&act).ok_or(PageError::NotFound)?;
    sent(&state, here, act, &fields).await
}

/// Counts the till of another seller.
pub(super) async fn count_for(
    State(state): State<AppState>,
    who: StaffResult,
    path: PathResult<(String, Uuid)>,
    form: FormResult<FormFields>,
) -> StaffPageResult {
    let (Path((theatre, till)), Form(fields)) = (path?, form?);
    let here = managers(&state, who, &theatre).await?;
    sent(&state, here, TillAct::CashUpFor(till), &fields).await
}

async fn sent(state: &AppState, here: CounterContext, act: TillAct, fields: &FormFields) -> StaffPageResult {
    let currency = here.counter().currency(state).await.map_err(away)?;
    let (form, minor) = read(act, fields, currency);
    let done = match minor {
        Some(minor) if !form.is_refused() => till_act(state, &here, act, minor, fields).await,
        _ => Err(Problem::new(Code::Malformed, "Some fields cannot be read.")),
    };
    after(state, here, (act, form), day_of(fields), done).await
}

/// The form as it was sent, with what is wrong beside each field; and the sum, minor units, where there is one.
fn read(act: TillAct, fields: &FormFields, currency: Currency) -> (TillForm, Option<i64>) {
    let (sum, reason) = (field(fields, "amount"), field(fields, "reason"));
    // Nothing is no drop.
    let least = i64::from(act == TillAct::Drop);
    let (amount, minor) = match parse_amount(sum, currency.minor_digits()) {
        None => (Field::refused(sum, Refusal::NoAmount(currency)), None),
        Some(minor) if (least..=MAX_COUNTED_MINOR).contains(&minor) => (Field::kept(sum), Some(minor)),
        Some(_) => {
            let [least, most] = [least, MAX_COUNTED_MINOR].map(|minor| Money::new(minor, currency));
            (Field::refused(sum, Refusal::AmountBeyond(least, most)), None)
        }
    };
    let may_be_silent = matches!(act, TillAct::Open | TillAct::CashUp) && reason.trim().is_empty();
    let reason = if may_be_silent { Field::kept(reason) } else { Field::reason(reason) };
    (TillForm { amount, reason }, minor)
}

async fn till_act(
    state: &AppState,
    here: &CounterContext,
    act: TillAct,
    minor: i64,
    fields: &FormFields,
) -> Result<Answer, Problem> {
    let (counter, reason) = (here.counter(), field(fields, "reason").to_owned());
    match act {
        TillAct::Open => {
            let request = OpenTill { float_minor: minor };
            box_office::open_till(state, counter, request, &intent(here, fields, "till", &request)?).await
        }
        TillAct::Drop => {
            let request = DropRequest { amount_minor: minor, reason };
            box_office::drop_cash(state, counter, &request, &intent(here, fields, "till/drops", &request)?).await
        }
        TillAct::CashUp => {
            let request = CashUp { counted_minor: minor, reason };
            box_office::cash_up(state, counter, &request, &intent(here, fields, "till/cash-up", &request)?).await
        }
        TillAct::CashUpFor(till) => {
            let request = CashUpFor { counted_minor: minor, reason };
            let intent = intent(here, fields, &format!("tills/{till}/cash-up"), &request)?;
            box_office::cash_up_for(state, counter, till, &request, &intent).await
        }
        TillAct::CloseDay => Err(Problem::not_found("act")),
    }
}

pub(super) async fn close_day(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    form: FormResult<FormFields>,
) -> StaffPageResult {
    let (Path(theatre), Form(fields)) = (theatre?, form?);
    let here = managers(&state, who, &theatre).await?;
    let request = DayClose { reason: field(&fields, "reason").to_owned() };
    let form = TillForm { amount: Field::default(), reason: Field::reason(request.reason.clone()) };
    let done = match intent(&here, &fields, "day-close", &request) {
        Ok(intent) => box_office::close_day(&state, here.counter(), &request, &intent).await,
        Err(problem) => Err(problem),
    };
    after(&state, here, (TillAct::CloseDay, form), day_of(&fields), done).await
}

/// The way on; or the page once more, with what was typed and what is wrong with it.
async fn after(
    state: &AppState,
    here: CounterContext,
    (act, mut form): (TillAct, TillForm),
    day: DayQuery,
    done: Result<Answer, Problem>,
) -> StaffPageResult {
    let Err(problem) = done else { return Ok(see(&here.day(&day))) };
    if problem.code() == Code::NotFound {
        return Err(PageError::NotFound.into());
    }
    // What is wrong with the sum only the till can say.
    if matches!(problem.code(), Code::TillShort | Code::TillDiffers) {
        form.amount.refusal = Some(Refusal::Message(words(&problem)));
    }
    let trouble = match (act, problem.code()) {
        _ if form.is_refused() => app::say!(in page_locale::language(), "field.refused").into(),
        // The problem's own words are about bookings.
        (TillAct::CashUpFor(_), Code::WrongState) => {
            app::say!(in page_locale::language(), "box_office.counted_already").into()
        }
        _ => hindrance(&problem),
    };
    let page = day_page(state, here, day, Some(CounterForm::Till(act, form)), Some(trouble)).await?;
    Ok(with_status(problem, page))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(act: TillAct, amount: &str, reason: &str) -> (TillForm, Option<i64>) {
        let fields = [("amount", amount), ("reason", reason)].map(|(name, text)| (name.to_owned(), text.to_owned()));
        read(act, &fields.into(), Currency::parse("EUR").expect("a code"))
    }

    #[test]
    fn the_input_stays_and_each_problem_is_beside_its_field() {
        let refused = |form: &TillForm| (form.amount.is_refused(), form.reason.is_refused());
        for (amount, is_refused) in [("100", false), ("0", false), ("a lot", true), ("-1", true), ("1000000.01", true)]
        {
            let (form, minor) = typed(TillAct::Open, amount, "");
            assert_eq!((form.amount.value.as_str(), refused(&form)), (amount, (is_refused, false)));
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
