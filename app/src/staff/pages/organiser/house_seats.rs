//! The house seats of a screen, kept off sale in every show planned there. A plain form: seats as checkboxes, and a
//! text field for names.

use std::collections::BTreeMap;

use domain::api::organiser::{ScreenHouseSeatView, ScreenHouseSeats};
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::reason_field;
use super::{Desk, Tab, Trouble, head, hidden, page};
use crate::language::Arg;
use crate::say;
use crate::shell::{Head, Page};
use crate::staff::islands::house_seats::{HouseRow, StaffHouseSeats, WORDS};

/// A refused choice.
#[derive(Clone, Debug, Default)]
pub struct HouseChoice {
    /// Ticked seats.
    pub ticked: Vec<String>,
    /// The typed names.
    pub names: String,
    /// The typed reason.
    pub reason: Field,
    /// Those of them that the room does not have.
    pub unknown: Vec<String>,
    /// True if it came from the form that removes seats of a previous room, not from the form that chooses seats.
    pub forgets: bool,
}

/// The page of house seats.
#[derive(Clone, Debug)]
pub struct HouseSeatsPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The stored house seats.
    pub standing: ScreenHouseSeats,
    /// The rows of the room; empty if it is too large.
    pub rows: Vec<HouseRow>,
    /// The refused choice.
    pub choice: HouseChoice,
    /// Idempotency key of the next action.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

impl HouseSeatsPage {
    fn title(&self) -> String {
        say!("house.title", screen = &self.standing.name)
    }
}

impl Page for HouseSeatsPage {
    fn head(&self) -> Head {
        let is_drawn = !self.rows.is_empty();
        Head { has_island: is_drawn, words: if is_drawn { WORDS } else { &[] }, ..head(self.title()) }
    }

    fn view(self) -> AnyView {
        let title = self.title();
        let Self { desk, standing, rows, choice, key, done, trouble } = self;
        let base = format!("/staff/{}", desk.theatre);
        let action = format!("{base}/screens/{}/house-seats", standing.screen);
        let room = format!("{base}/layouts/{}", standing.layout);
        let unknown = (!choice.unknown.is_empty()).then(|| {
            let names = choice.unknown.join(", ");
            view! { <p class="account-trouble" role="alert" data-testid="house-unknown">{say!("house.unknown", seats = Arg::Ours(&names))}</p> }
        });
        let layout = standing.layout.to_string();
        // The values of one form are not shown in the other.
        let (removal_reason, choice) =
            if choice.forgets { (choice.reason, HouseChoice::default()) } else { (Field::default(), choice) };
        let missing_seats =
            (!standing.gone.is_empty()).then(|| missing_seats(&standing.gone, &action, &key, &layout, removal_reason));
        let marks: Vec<_> = standing.seats.iter().filter_map(|kept| Some((kept.seat?, kept.reason.clone()))).collect();
        let plan = if rows.is_empty() {
            view! { <p class="quiet organiser-wide">{say!("house.too_large")}</p> }.into_any()
        } else {
            view! {
                <fieldset class="organiser-wide">
                    <legend>{say!("house.plan")}</legend>
                    <p class="quiet small">{say!("house.keys")}</p>
                    <StaffHouseSeats rows=rows kept=marks chosen=choice.ticked />
                </fieldset>
            }
            .into_any()
        };
        let content = view! {
            <p class="crumbs"><a href=format!("{base}/screens")>{say!("organiser.screens")}</a>" · "<a href=room>{say!("organiser.see_room")}</a></p>
            <p class="quiet">{say!("house.lead")}</p>
            {unknown}
            {missing_seats}
            {kept(&standing.seats)}
            <form class="organiser-form card organiser-card" action=action method="post">
                {hidden("key", key)}
                {hidden("layout", layout)}
                {plan}
                <div class="field organiser-wide">
                    <label for="house-names">{say!("house.names")}</label>
                    <textarea id="house-names" name="names" rows="2" spellcheck="false" dir="ltr">{choice.names}</textarea>
                </div>
                {reason_field("house-reason", say!("organiser.reason"), choice.reason, true)}
                <p class="organiser-ways organiser-wide">
                    <button class="button" r#type="submit" name="kept" value="true" data-testid="house-keep">{say!("house.keep")}</button>
                    <button class="button button-quiet" r#type="submit" name="kept" value="false" data-testid="house-put-back">{say!("house.put_back")}</button>
                </p>
            </form>
        };
        page(&desk, Tab::Screens, title, done, trouble, content.into_any())
    }
}

/// The house seats, grouped by reason and account.
fn kept(seats: &[ScreenHouseSeatView]) -> impl IntoView + use<> {
    let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for seat in seats {
        groups.entry((&seat.reason, &seat.by)).or_default().push(&seat.label);
    }
    let lines = groups.into_iter().map(|((reason, name), labels)| {
        let labels = labels.join(", ");
        view! { <li>{say!("house.group", reason = reason, name = name, seats = Arg::Ours(&labels))}</li> }
    });
    let lines = lines.collect_view();
    let nothing = seats.is_empty().then(|| view! { <p class="quiet">{say!("house.none")}</p> });
    view! {
        <section aria-labelledby="house-kept">
            <h2 id="house-kept">{say!("house.count", count = seats.len())}</h2>
            {nothing}
            <ul class="organiser-films" data-testid="house-kept">{lines}</ul>
        </section>
    }
}

/// House seats of a previous room that this room does not have, with a form to remove them.
fn missing_seats(
    seats: &[ScreenHouseSeatView],
    action: &str,
    key: &str,
    layout: &str,
    reason: Field,
) -> impl IntoView + use<> {
    let fields: Vec<_> = seats.iter().map(|seat| hidden("seat", seat.label.clone())).collect();
    let lines = seats.iter().map(|seat| {
        view! { <li><bdi>{seat.label.clone()}</bdi>": "<bdi>{seat.reason.clone()}</bdi></li> }
    });
    let lines = lines.collect_view();
    view! {
        <section class="card organiser-card organiser-danger" aria-labelledby="house-gone" data-testid="house-gone">
            <h2 id="house-gone">{say!("house.gone_title")}</h2>
            <p>{say!("house.gone_lead")}</p>
            <ul>{lines}</ul>
            <form class="organiser-form" action=action.to_owned() method="post">
                {hidden("key", key.to_owned())}
                {hidden("layout", layout.to_owned())}
                {hidden("kept", "false".to_owned())}
                {hidden("forgets", "true".to_owned())}
                {fields}
                {reason_field("gone-reason", say!("organiser.reason"), reason, true)}
                <button class="button button-quiet" r#type="submit" data-testid="house-forget">{say!("house.forget")}</button>
            </form>
        </section>
    }
}
