//! Parked effects of bookings, which failed finally and wait for a manager. A list with two plain forms per entry,
//! without a script.

use domain::api::parked::ParkedView;
use leptos::prelude::*;

use super::fields::reason_field;
use super::{Desk, Field, frame};
use crate::language::{Arg, Hindrance, Moment, current, money};
use crate::say;
use crate::shell::{Head, Page};
use crate::staff::islands::in_the_way;

/// A refused form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedForm {
    /// The entry.
    pub id: i64,
    /// The form, by the last part of its address.
    pub decision: String,
    /// The typed reason.
    pub reason: Field,
}

/// The page of parked effects.
#[derive(Clone, Debug)]
pub struct ParkedPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The entries, oldest first; `since` is in the theatre's time zone.
    pub parked: Vec<ParkedView>,
    /// The refused form, if any.
    pub refused: Option<ParkedForm>,
    /// True if a decision was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Hindrance>,
    /// Prefix of the forms' idempotency keys. Each form adds its name.
    pub intent: String,
}

impl Page for ParkedPage {
    fn head(&self) -> Head {
        Head { title: say!("parked.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let Self { desk, parked, refused, done, trouble, intent } = self;
        let trouble = trouble.map(|words| {
            view! { <p class="account-trouble" role="alert" data-testid="parked-trouble">{in_the_way(words)}</p> }
        });
        let done = done.then(|| view! { <p role="status" data-testid="parked-done">{say!("parked.done")}</p> });
        let content = view! {
            <div class="systems">
                {trouble}
                {done}
                <p class="quiet">{say!("parked.lead")}</p>
                {list(&desk.theatre, parked, refused.as_ref(), &intent)}
            </div>
        };
        frame(&desk, say!("parked.title"), content)
    }
}

fn list(theatre: &str, parked: Vec<ParkedView>, refused: Option<&ParkedForm>, intent: &str) -> AnyView {
    if parked.is_empty() {
        return view! { <p class="card systems-part" data-testid="parked-none">{say!("parked.none")}</p> }.into_any();
    }
    let lines = parked.into_iter().map(|one| entry(theatre, one, refused, intent)).collect_view();
    view! { <ul class="account-list" aria-label=say!("parked.list")>{lines}</ul> }.into_any()
}

fn entry(theatre: &str, parked: ParkedView, refused: Option<&ParkedForm>, intent: &str) -> AnyView {
    let ParkedView { id, booking, reference, effect, amount, attempts, why, since } = parked;
    let name = reference.clone();
    let since = Moment::parse(&since).map_or(since, |moment| moment.in_words(current()));
    let amount = amount.map(|amount| view! { ": "<strong>{money(amount, current())}</strong> });
    let form = |decision| Form { theatre, id, decision, effect: &effect, refused, intent }.view();
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
    .into_any()
}

/// The effect in the language of the page. Effects of another server version are shown by name.
fn effect_words(effect: &str) -> AnyView {
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
        other => return view! { <bdi lang="en">{other.replace('_', " ")}</bdi> }.into_any(),
    };
    say!(key).into_any()
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

/// One of the two forms of an entry.
#[derive(Clone, Copy)]
struct Form<'a> {
    theatre: &'a str,
    id: i64,
    /// The last part of its address.
    decision: &'static str,
    effect: &'a str,
    refused: Option<&'a ParkedForm>,
    intent: &'a str,
}

impl Form<'_> {
    /// A reason and a button in a disclosure.
    fn view(self) -> impl IntoView + use<> {
        let Self { theatre, id, decision, effect, refused, intent } = self;
        let typed = refused.filter(|form| form.id == id && form.decision == decision);
        let (words, then) = decision_words(decision, effect);
        let reason = typed.map(|form| form.reason.clone()).unwrap_or_default();
        let (name, is_open) = (format!("{decision}-{id}"), typed.is_some());
        view! {
            <details class="systems-act" open=is_open>
                <summary data-testid=format!("parked-{decision}")>{words.clone()}</summary>
                <form action=format!("/staff/{theatre}/parked/{id}/{decision}") method="post" class="systems-form">
                    <input r#type="hidden" name="key" value=format!("{intent}/{name}") />
                    <p class="quiet small">{then}</p>
                    {reason_field(format!("reason-{name}"), say!("parked.reason"), reason, true)}
                    <button class="button button-quiet" r#type="submit">{words}</button>
                </form>
            </details>
        }
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
        assert!(then("refund").contains("counts as paid back"), "{}", then("refund"));
        assert!(then("send_ticket").contains("Nothing more happens"), "{}", then("send_ticket"));
    }
}
