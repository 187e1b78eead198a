//! The staff of a theatre, their roles, and the audit log. Plain forms with a reason each, without a script.

use domain::VariantName;
use domain::api::accounts::{AuditView, GrantRequest, StaffView, THEATRE_ACTIONS};
use domain::person::MAX_EMAIL_BYTES;
use domain::roles::Role;
use language::{Moment, current, say};
use leptos::prelude::*;
use strum::VariantArray;

use super::fields::{Field, hidden};
use super::{Desk, Form, REASON, page, wide_table};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

const WHY: Field = Field::reason("team-reason", "team.reason");
/// The name of the form that grants a role.
const GRANT: &str = "new";

/// Returns the name of the form that revokes a role.
fn revoke_form_name(email: &str, role: Role) -> String {
    format!("take-{}-{email}", role.as_str())
}

/// The request of a sent form, and the form's name; `None` for a form that the page does not have.
#[must_use]
pub fn grant_request(form: &Form) -> Option<(GrantRequest, String)> {
    let (email, role) = (form.text("email"), form.get("role").parse().ok()?);
    let granted = form.get("granted").parse().ok()?;
    let name = if granted { GRANT.to_owned() } else { revoke_form_name(&email, role) };
    Some((GrantRequest { email, role, granted, reason: form.text(REASON) }, name))
}

/// The page of a theatre's staff, by name. A refused form is named as [`grant_request`] says.
pub fn team_page(desk: Desk, people: Vec<StaffView>, form: Form) -> impl Page {
    page(desk, "team.title", move |desk| {
        let base = format!("/staff/{}/team", desk.theatre);
        let done = desk.done.then(|| view! { <p class="account-notice" role="status">{say!("team.done")}</p> });
        let people = people.into_iter().enumerate();
        let people = people.map(|(number, person)| line(&base, number, person, &form, &desk.key)).collect_view();
        view! {
            <div class="systems">
                {desk.error_view("team-trouble")}
                {done}
                <section class="card systems-part" aria-labelledby="team-people">
                    <h2 id="team-people">{say!("team.people")}</h2>
                    <p class="quiet">{say!("team.lead")}</p>
                    <ul class="systems-list">{people}</ul>
                    {newcomer(&base, &form.only(GRANT), &desk.key)}
                </section>
                <p><a class="button button-quiet" data-testid="to-acts" href=format!("{base}/acts")>{say!("acts.title")}</a></p>
            </div>
        }
        .into_markup()
    })
}

fn role_words(role: Role) -> String {
    match role {
        Role::BoxOffice => say!("team.box_office"),
        Role::Manager => say!("team.manager"),
        Role::Organiser => say!("team.organiser"),
    }
}

/// A member, with a form to revoke each role.
fn line(base: &str, number: usize, person: StaffView, form: &Form, intent: &str) -> Markup {
    let StaffView { name, email, roles, .. } = person;
    let acts =
        roles.into_iter().map(|role| revoke_form(base, number, (&name, &email), role, form, intent)).collect_view();
    view! {
        <li class="systems-line" data-testid="team-person">
            <div>
                <strong><bdi>{name.clone()}</bdi></strong>
                <p class="quiet small"><bdi dir="ltr">{email.clone()}</bdi></p>
            </div>
            <div class="team-roles">{acts}</div>
        </li>
    }
    .into_markup()
}

fn revoke_form(
    base: &str,
    number: usize,
    (name, email): (&str, &str),
    role: Role,
    form: &Form,
    intent: &str,
) -> Markup {
    let name_of_form = revoke_form_name(email, role);
    let (is_refused, form) = (form.is(&name_of_form), form.only(&name_of_form));
    let words = role_words(role);
    view! {
        <details class="systems-act" open=is_refused>
            <summary data-testid="team-role" data-role=role.as_str()>{words.clone()}</summary>
            <form action=base.to_owned() method="post" class="systems-form">
                {hidden("key", format!("{intent}/take-{number}-{}", role.as_str()))}
                {hidden("email", email)}
                {hidden("role", role.as_str())}
                {hidden("granted", "false")}
                <p class="quiet small">{say!("team.take_means", name = name, role = &words)}</p>
                {WHY.with_id(format!("reason-{number}-{}", role.as_str()), &form)}
                <button class="button button-quiet" r#type="submit">{say!("team.take")}</button>
            </form>
        </details>
    }
    .into_markup()
}

fn newcomer(base: &str, form: &Form, intent: &str) -> Markup {
    let chosen = form.get("role").parse().unwrap_or(Role::BoxOffice);
    let options = Role::VARIANTS.iter().map(|&role| {
        view! { <option value=role.as_str() selected=role == chosen>{role_words(role)}</option> }
    });
    view! {
        <form class="systems-form" action=base.to_owned() method="post">
            <h3>{say!("team.new")}</h3>
            <p class="quiet small">{say!("team.new_lead")}</p>
            {hidden("key", format!("{intent}/new"))}
            {hidden("granted", "true")}
            <div class="field">
                <label for="team-email">{say!("team.email")}</label>
                <input id="team-email" name="email" r#type="email" required maxlength=MAX_EMAIL_BYTES autocomplete="off" dir="ltr"
                    value=form.text("email") />
            </div>
            <div class="field">
                <label for="team-role">{say!("team.role")}</label>
                <select id="team-role" name="role">{options.collect_view()}</select>
            </div>
            {WHY.view(form)}
            <button class="button" r#type="submit" data-testid="team-give">{say!("team.give")}</button>
        </form>
    }
    .into_markup()
}

/// The page of the audit log: the entries, newest first, with their local time, `2026-12-07T19:42:07`; and the number
/// before which older entries follow.
pub fn audit_page(desk: Desk, lines: Vec<(AuditView, String)>, is_later_page: bool, before: Option<i64>) -> impl Page {
    page(desk, "acts.title", move |desk| {
        let base = format!("/staff/{}/team", desk.theatre);
        let older = before.map(|number| {
            let href = format!("{base}/acts?before={number}");
            view! { <a class="button button-quiet" rel="next" data-testid="acts-older" href=href>{say!("acts.older")}</a> }
        });
        let newest = is_later_page.then(|| {
            view! { <a class="button button-quiet" href=format!("{base}/acts")>{say!("acts.newest")}</a> }
        });
        view! {
            <div class="systems">
                <p class="quiet">{say!("acts.lead")}</p>
                {table(&desk.theatre, lines)}
                <p class="team-pages">{newest}{older}<a class="button button-quiet" href=base.clone()>{say!("team.title")}</a></p>
            </div>
        }
        .into_markup()
    })
}

fn table(theatre: &str, lines: Vec<(AuditView, String)>) -> Markup {
    if lines.is_empty() {
        return view! { <p class="card systems-part">{say!("acts.none")}</p> }.into_markup();
    }
    let row = |(line, at): (AuditView, String)| {
        let when = Moment::parse(&at).map_or(at, |moment| moment.to_the_second(current()));
        let subject = subject(theatre, &line);
        let who = line.actor_name.unwrap_or_else(|| say!("acts.operator"));
        view! {
            <tr data-testid="act" data-act=line.act.clone()>
                <th scope="row" class="reports-words">
                    {act_words(&line.act)}
                    <span class="quiet small team-subject">{subject}</span>
                </th>
                <td class="reports-words" data-label=say!("acts.why")><bdi>{line.reason_name.unwrap_or(line.reason)}</bdi></td>
                <td class="reports-words" data-label=say!("acts.who")><bdi>{who}</bdi></td>
                <td class="reports-words" data-label=say!("acts.when")><time datetime=line.at>{when}</time></td>
            </tr>
        }
    };
    let columns = ["acts.what", "acts.why", "acts.who", "acts.when"].map(|message| (message, true));
    wide_table(say!("acts.title"), &columns, lines.into_iter().map(row).collect_view())
}

/// The subject of an entry, by name if it has one. A booking links to its page; the theatre itself is omitted.
fn subject(theatre: &str, line: &AuditView) -> Markup {
    if let Some(reference) = line.subject.strip_prefix("booking ") {
        let href = format!("/staff/{theatre}/box-office/bookings?reference={reference}");
        return view! { <a href=href dir="ltr">{reference.to_owned()}</a> }.into_markup();
    }
    if line.subject.strip_prefix("theatre ") == Some(theatre) {
        return ().into_markup();
    }
    let words = line.subject_name.as_ref().unwrap_or(&line.subject);
    match words.rsplit_once(" as ").and_then(|(who, role)| Some((who, role.parse::<Role>().ok()?))) {
        Some((who, role)) => view! { <bdi>{who.to_owned()}</bdi>": "{role_words(role)} }.into_markup(),
        None => view! { <bdi>{words.clone()}</bdi> }.into_markup(),
    }
}

/// An act in the language of the page. Acts of another server version are shown by name.
fn act_words(act: &str) -> Markup {
    if THEATRE_ACTIONS.contains(&act) {
        return say!(&format!("acts.{act}")).into_markup();
    }
    view! { <bdi lang="en">{act.replace('_', " ")}</bdi> }.into_markup()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_audited_act_has_a_message() {
        for key in THEATRE_ACTIONS.map(|act| format!("acts.{act}")) {
            assert_ne!(say!(&key), key);
        }
    }
}
