//! Parked effects of bookings, which failed finally and wait for a manager. A list with two plain forms per entry,
//! without a script.

use domain::api::parked::ParkedView;
use language::{Arg, current, money, say};
use leptos::prelude::*;

use super::fields::{Field, hidden};
use super::{Desk, Form, page, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

const WHY: Field = Field::reason("", "parked.reason");

/// The page of parked effects, oldest first; `since` is in the theatre's time zone. A refused form is named `retry-` or
/// `settle-` and the entry's id.
pub fn parked_page(desk: Desk, parked: Vec<ParkedView>, refused: Form) -> impl Page {
    page(desk, "parked.title", move |desk| {
        let done = desk.done.then(|| view! { <p role="status" data-testid="parked-done">{say!("parked.done")}</p> });
        view! {
            <div class="systems">
                {desk.error_view("parked-trouble")}
                {done}
                <p class="quiet">{say!("parked.lead")}</p>
                {list(desk, parked, &refused)}
            </div>
        }
        .into_markup()
    })
}

fn list(desk: &Desk, parked: Vec<ParkedView>, refused: &Form) -> Markup {
    if parked.is_empty() {
        return view! { <p class="card systems-part" data-testid="parked-none">{say!("parked.none")}</p> }
            .into_markup();
    }
    let lines = parked.into_iter().map(|one| entry(desk, one, refused)).collect_view();
    view! { <ul class="account-list" aria-label=say!("parked.list")>{lines}</ul> }.into_markup()
}

fn entry(desk: &Desk, parked: ParkedView, refused: &Form) -> Markup {
    let ParkedView { id, booking, reference, effect, amount, attempts, why, since } = parked;
    let name = reference.clone();
    let since = when(&since);
    let amount = amount.map(|amount| view! { ": "<strong>{money(amount, current())}</strong> });
    let form = |decision| decision_form(desk, id, decision, &effect, refused);
    let theatre = &desk.theatre;
    view! {
        <li class="card systems-part" data-testid="parked" data-effect=effect.clone() data-reference=name>
            <h2>{effect_words(&effect)}{amount}</h2>
            <p>
                {say!("parked.booking")}" "
                <a href=format!("/staff/{theatre}/box-office/bookings/{booking}") dir="ltr" data-testid="parked-booking">{reference}</a>
            </p>
            <p class="quiet small">{say!("parked.since", time = Arg::Ours(&since), tries = attempts)}</p>
            <p><bdi lang="en">{why}</bdi></p>
            <div class="systems-acts">{form("retry")}{form("settle")}</div>
        </li>
    }
    .into_markup()
}

/// The effect in the language of the page. Effects of another server version are shown by name.
fn effect_words(effect: &str) -> Markup {
    let key = match effect {
        "charge" => "parked.charge",
        "void_payment" => "parked.void_payment",
        "void_left" => "parked.void_left",
        "refund" => "parked.refund",
        "refund_part" => "parked.refund_part",
        "mark_booked" => "parked.mark_booked",
        "release_seats" | "release_part" => "parked.release_seats",
        "send_ticket" => "parked.send_ticket",
        "send_notice" => "parked.send_notice",
        "place_late" => "parked.place_late",
        "compare_ledger" => "parked.compare_ledger",
        other => return view! { <bdi lang="en">{other.replace('_', " ")}</bdi> }.into_markup(),
    };
    say!(key).into_markup()
}

/// The label of a decision about an effect, and its consequence.
fn decision_words(decision: &str, effect: &str) -> (String, String) {
    match (decision, effect) {
        ("retry", "refund" | "refund_part") => (say!("parked.retry"), say!("parked.retry_refund_then")),
        ("retry", "compare_ledger") => (say!("parked.retry"), say!("parked.retry_ledger_then")),
        (_, "compare_ledger") => (say!("parked.settle"), say!("parked.settle_ledger_then")),
        ("retry", _) => (say!("parked.retry"), say!("parked.retry_then")),
        (_, "refund" | "refund_part") => (say!("parked.settle_refund"), say!("parked.settle_refund_then")),
        // Settling a late payment refunds it.
        (_, "place_late") => (say!("parked.refund"), say!("parked.settle_late_then")),
        _ => (say!("parked.settle"), say!("parked.settle_then")),
    }
}

/// One of the two forms of an entry: a reason and a button in a disclosure. `decision` ends its address.
fn decision_form(desk: &Desk, id: i64, decision: &'static str, effect: &str, refused: &Form) -> impl IntoView + use<> {
    let (words, then) = decision_words(decision, effect);
    let name = format!("{decision}-{id}");
    view! {
        <details class="systems-act" open=refused.is(&name)>
            <summary data-testid=format!("parked-{decision}")>{words.clone()}</summary>
            <form action=format!("/staff/{}/parked/{id}/{decision}", desk.theatre) method="post" class="systems-form">
                {hidden("key", format!("{}/{name}", desk.key))}
                <p class="quiet small">{then}</p>
                {WHY.with_id(format!("reason-{name}"), &refused.only(&name))}
                <button class="button button-quiet" r#type="submit">{words}</button>
            </form>
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_without_attempts_shows_no_attempt_count() {
        let said = |tries: u32| say!("parked.since", time = Arg::Ours("Monday"), tries = tries);
        assert_eq!([0, 1, 40].map(said), ["Since Monday", "Since Monday, tried once", "Since Monday, tried 40 times"]);
    }

    #[test]
    fn settling_a_late_payment_announces_the_refund() {
        let then = |effect: &str| decision_words("settle", effect).1;
        assert!(then("place_late").contains("the money goes back"), "{}", then("place_late"));
        assert!(then("refund").contains("counts as refunded"), "{}", then("refund"));
        assert!(then("send_ticket").contains("Nothing more happens"), "{}", then("send_ticket"));
    }
}
