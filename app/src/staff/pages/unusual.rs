//! Unusual patterns of holds in a theatre's shows. A list with a plain form per entry, without a script.

use domain::api::fairness::UnusualView;
use domain::api::systems::MAX_REASON_CHARS;
use domain::fairness::{UnusualKind, UnusualSubject};
use leptos::prelude::*;

use super::{Desk, frame};
use crate::language::{self, Hindrance, Moment, number};
use crate::say;
use crate::shell::{Head, Page};
use crate::staff::islands::in_the_way;

/// The page of unusual patterns.
#[derive(Clone, Debug)]
pub struct Unusual {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The patterns, those that are not dismissed first.
    pub flags: Vec<UnusualView>,
    /// The error of the last attempt.
    pub trouble: Option<Hindrance>,
    /// Prefix of the forms' idempotency keys. Each form adds its name.
    pub intent: String,
}

impl Page for Unusual {
    fn head(&self) -> Head {
        Head { title: say!("unusual.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let Self { desk, flags, trouble, intent } = self;
        let base = format!("/staff/{}/unusual", desk.theatre);
        let trouble = trouble.map(|words| {
            view! { <p class="account-trouble" role="alert" data-testid="unusual-trouble">{in_the_way(words)}</p> }
        });
        let content = view! {
            <div class="systems">
                {trouble}
                <p class="quiet">{say!("unusual.lead")}</p>
                {list(&base, flags, &intent)}
            </div>
        };
        frame(&desk, say!("unusual.title"), content)
    }
}

/// A time in the reader's language, in UTC because it may concern shows of several halls and days.
fn when(at: &str) -> String {
    Moment::parse(at).map_or_else(|| at.to_owned(), |moment| format!("{} UTC", moment.in_words(language::current())))
}

fn kind_words(kind: UnusualKind) -> String {
    match kind {
        UnusualKind::NeverBought => say!("unusual.never_bought"),
        UnusualKind::ManyVisitors => say!("unusual.many_visitors"),
        UnusualKind::Timing => say!("unusual.timing"),
        UnusualKind::Puzzles => say!("unusual.puzzles"),
    }
}

fn whose(subject: UnusualSubject, tag: &str) -> String {
    match subject {
        UnusualSubject::Visitor => say!("unusual.visitor", tag = tag),
        UnusualSubject::Address => say!("unusual.address", tag = tag),
    }
}

fn list(base: &str, flags: Vec<UnusualView>, intent: &str) -> AnyView {
    if flags.is_empty() {
        return view! { <p class="card systems-part" data-testid="unusual-none">{say!("unusual.none")}</p> }.into_any();
    }
    let rows = flags.into_iter().map(|flag| row(base, flag, intent)).collect_view();
    view! {
        <div class="reports-scroll" tabindex="0" role="group" aria-label=say!("unusual.list")>
            <table class="reports-table">
                <caption class="visually-hidden">{say!("unusual.list")}</caption>
                <thead>
                    <tr>
                        <th scope="col">{say!("unusual.what")}</th>
                        <th scope="col" class="reports-words">{say!("unusual.whose")}</th>
                        <th scope="col">{say!("unusual.how_many")}</th>
                        <th scope="col" class="reports-words">{say!("unusual.since")}</th>
                        <th scope="col" class="reports-words">{say!("unusual.last")}</th>
                        <td></td>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn row(base: &str, flag: UnusualView, intent: &str) -> AnyView {
    let starts = Moment::parse(&flag.starts_local);
    let starts = starts.map_or(flag.starts_local, |moment| moment.in_words(language::current()));
    let fate = match (flag.dismissed_at, flag.reason) {
        (Some(at), reason) => {
            let words = say!("unusual.dismissed", when = &when(&at), reason = &reason.unwrap_or_default());
            view! { <p class="quiet small" data-testid="unusual-dismissed">{words}</p> }.into_any()
        }
        (None, _) => dismiss(format!("{base}/{}/dismiss", flag.id), &flag.id.to_string(), intent),
    };
    view! {
        <tr data-testid="unusual" data-kind=flag.kind.as_str() data-subject=flag.subject.as_str() data-show=flag.show.to_string()>
            <th scope="row">
                {kind_words(flag.kind)}
                <span class="quiet small">" "<bdi>{flag.film}</bdi>" · "{starts}</span>
            </th>
            <td class="reports-words">{whose(flag.subject, &flag.tag)}</td>
            <td>{number(i64::from(flag.seen), language::current())}</td>
            <td class="reports-words">{when(&flag.since)}</td>
            <td class="reports-words">{when(&flag.last_at)}</td>
            <td class="reports-words">{fate}</td>
        </tr>
    }
    .into_any()
}

/// A form with a reason and a button in a disclosure.
fn dismiss(action: String, id: &str, intent: &str) -> AnyView {
    let field = format!("reason-{id}");
    view! {
        <details class="systems-act">
            <summary data-testid="unusual-dismiss">{say!("unusual.dismiss")}</summary>
            <form action=action method="post" class="systems-form">
                <input r#type="hidden" name="key" value=format!("{intent}/dismiss-{id}") />
                <div class="field">
                    <label for=field.clone()>{say!("unusual.reason")}</label>
                    <input id=field name="reason" r#type="text" required maxlength=MAX_REASON_CHARS autocomplete="off" />
                </div>
                <button class="button button-quiet" r#type="submit">{say!("unusual.dismiss")}</button>
            </form>
        </details>
    }
    .into_any()
}
