//! Unusual patterns of holds in a theatre's shows. A list with a plain form per entry, without a script.

use domain::VariantName;
use domain::api::fairness::UnusualView;
use domain::api::systems::MAX_REASON_CHARS;
use domain::fairness::{UnusualKind, UnusualSubject};
use language::{current, number, say};
use leptos::prelude::*;

use super::fields::hidden;
use super::{Desk, page, when, when_utc, wide_table};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

/// The page of unusual patterns, those that are not dismissed first.
pub fn unusual_page(desk: Desk, flags: Vec<UnusualView>) -> impl Page {
    page(desk, "unusual.title", move |desk| {
        let base = format!("/staff/{}/unusual", desk.theatre);
        view! {
            <div class="systems">
                {desk.error_view("unusual-trouble")}
                <p class="quiet">{say!("unusual.lead")}</p>
                {list(&base, flags, &desk.key)}
            </div>
        }
        .into_markup()
    })
}

fn kind_words(kind: UnusualKind) -> String {
    match kind {
        UnusualKind::NeverBought => say!("unusual.never_bought"),
        UnusualKind::ManyVisitors => say!("unusual.many_visitors"),
        UnusualKind::Timing => say!("unusual.timing"),
        UnusualKind::Puzzles => say!("unusual.puzzles"),
    }
}

fn subject_words(subject: UnusualSubject, tag: &str) -> String {
    match subject {
        UnusualSubject::Visitor => say!("unusual.visitor", tag = tag),
        UnusualSubject::Address => say!("unusual.address", tag = tag),
    }
}

fn list(base: &str, flags: Vec<UnusualView>, intent: &str) -> Markup {
    if flags.is_empty() {
        return view! { <p class="card systems-part" data-testid="unusual-none">{say!("unusual.none")}</p> }
            .into_markup();
    }
    let rows = flags.into_iter().map(|flag| row(base, flag, intent)).collect_view();
    let columns = [
        ("unusual.what", false),
        ("unusual.whose", true),
        ("unusual.how_many", false),
        ("unusual.since", true),
        ("unusual.last", true),
        ("", false),
    ];
    wide_table(say!("unusual.list"), &columns, rows)
}

fn row(base: &str, flag: UnusualView, intent: &str) -> Markup {
    let starts = when(&flag.starts_local);
    let fate = match (flag.dismissed_at, flag.reason) {
        (Some(at), reason) => {
            let words = say!("unusual.dismissed", when = &when_utc(&at), reason = &reason.unwrap_or_default());
            view! { <p class="quiet small" data-testid="unusual-dismissed">{words}</p> }.into_markup()
        }
        (None, _) => dismiss(format!("{base}/{}/dismiss", flag.id), &flag.id.to_string(), intent),
    };
    view! {
        <tr data-testid="unusual" data-kind=flag.kind.as_str() data-subject=flag.subject.as_str() data-show=flag.show.to_string()>
            <th scope="row">
                {kind_words(flag.kind)}
                <span class="quiet small">" "<bdi>{flag.film}</bdi>" · "{starts}</span>
            </th>
            <td class="reports-words" data-label=say!("unusual.whose")>{subject_words(flag.subject, &flag.tag)}</td>
            <td data-label=say!("unusual.how_many")>{number(i64::from(flag.seen), current())}</td>
            <td class="reports-words" data-label=say!("unusual.since")>
                <time datetime=flag.since.clone()>{when_utc(&flag.since)}</time>
            </td>
            <td class="reports-words" data-label=say!("unusual.last")>
                <time datetime=flag.last_at.clone()>{when_utc(&flag.last_at)}</time>
            </td>
            <td class="reports-words">{fate}</td>
        </tr>
    }
    .into_markup()
}

fn dismiss(action: String, id: &str, intent: &str) -> Markup {
    let field = format!("reason-{id}");
    view! {
        <details class="systems-act">
            <summary data-testid="unusual-dismiss">{say!("unusual.dismiss")}</summary>
            <form action=action method="post" class="systems-form">
                {hidden("key", format!("{intent}/dismiss-{id}"))}
                <div class="field">
                    <label for=field.clone()>{say!("unusual.reason")}</label>
                    <input id=field name="reason" r#type="text" required maxlength=MAX_REASON_CHARS autocomplete="off" />
                </div>
                <button class="button button-quiet" r#type="submit">{say!("unusual.dismiss")}</button>
            </form>
        </details>
    }
    .into_markup()
}
