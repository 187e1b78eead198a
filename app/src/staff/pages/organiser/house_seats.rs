//! The house seats of a screen, kept off sale in every show planned there. A plain form: seats as checkboxes, and a
//! text field for names.

use std::collections::{BTreeMap, BTreeSet};

use domain::api::organiser::{ScreenHouseSeatView, ScreenHouseSeats, ScreenHouseSeatsRequest};
use language::{Arg, say};
use leptos::prelude::*;

use super::fields::{Field, hidden};
use super::form::REASON;
use super::{Desk, Form, titled_page};
use crate::markup::IntoMarkup;
use crate::shell::{Head, Page};
use crate::staff::islands::house_seats::{HouseRow, StaffHouseSeats, WORDS};

const WHY_KEEP: Field = Field::reason("house-reason", "organiser.reason");
const WHY_FORGET: Field = Field::reason("gone-reason", "organiser.reason");
/// The name of the form that chooses seats.
pub const KEEP: &str = "keep";
/// The name of the form that removes seats of a previous room.
pub const FORGET: &str = "forget";

/// The choice of a sent form, each seat once: a seat may be both ticked and written.
///
/// # Errors
/// It is not the page's form.
pub fn standing_request(form: &Form) -> Result<ScreenHouseSeatsRequest, String> {
    let written = form.get("names").split(['\n', ',', ';']).map(str::trim).filter(|name| !name.is_empty());
    let seats: BTreeSet<&str> = form.all("seat").chain(written).collect();
    let (layout, kept) = (form.get("layout").parse(), form.get("kept").parse());
    let (Ok(layout), Ok(kept)) = (layout, kept) else { return Err("Send the form as it is.".to_owned()) };
    let seats = seats.into_iter().map(str::to_owned).collect();
    Ok(ScreenHouseSeatsRequest { layout, seats, kept, reason: form.text(REASON) })
}

/// The page of a screen's house seats. `rows` is empty if the room is too large; a refused form is named [`KEEP`] or
/// [`FORGET`], and `unknown` has those of its seats that the room does not have.
pub fn house_seats_page(
    desk: Desk,
    standing: ScreenHouseSeats,
    rows: Vec<HouseRow>,
    form: Form,
    unknown: Vec<String>,
) -> impl Page {
    let is_drawn = !rows.is_empty();
    let head = Head { has_island: is_drawn, words: if is_drawn { WORDS } else { &[] }, ..Head::default() };
    let screen = standing.name.clone();
    let content = move |desk: &Desk| {
        let base = format!("/staff/{}", desk.theatre);
        let action = format!("{base}/screens/{}/house-seats", standing.screen);
        let room = format!("{base}/layouts/{}", standing.layout);
        let unknown = (!unknown.is_empty()).then(|| {
            let names = unknown.join(", ");
            view! { <p class="account-trouble" role="alert" data-testid="house-unknown">{say!("house.unknown", seats = Arg::Ours(&names))}</p> }
        });
        let layout = standing.layout.to_string();
        let (key, choice) = (&desk.key, form.only(KEEP));
        let chosen: Vec<String> = choice.all("seat").map(str::to_owned).collect();
        let missing_seats = (!standing.gone.is_empty())
            .then(|| missing_seats(&standing.gone, &action, key, &layout, &form.only(FORGET)));
        let marks: Vec<_> = standing.seats.iter().filter_map(|kept| Some((kept.seat?, kept.reason.clone()))).collect();
        let plan = if rows.is_empty() {
            view! { <p class="quiet organiser-wide">{say!("house.too_large")}</p> }.into_markup()
        } else {
            view! {
                <fieldset class="organiser-wide">
                    <legend>{say!("house.plan")}</legend>
                    <p class="quiet small">{say!("house.keys")}</p>
                    <StaffHouseSeats rows=rows kept=marks chosen=chosen />
                </fieldset>
            }
            .into_markup()
        };
        view! {
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
                    <textarea id="house-names" name="names" rows="2" spellcheck="false" dir="ltr">{choice.text("names")}</textarea>
                </div>
                {WHY_KEEP.view(&choice)}
                <p class="organiser-ways organiser-wide">
                    <button class="button" r#type="submit" name="kept" value="true" data-testid="house-keep">{say!("house.keep")}</button>
                    <button class="button button-quiet" r#type="submit" name="kept" value="false" data-testid="house-put-back">{say!("house.put_back")}</button>
                </p>
            </form>
        }
        .into_markup()
    };
    titled_page(desk, None, head, move || say!("house.title", screen = &screen), content)
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
    form: &Form,
) -> impl IntoView + use<> {
    let fields: Vec<_> = seats.iter().map(|seat| hidden("seat", &seat.label)).collect();
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
                {hidden("key", key)}
                {hidden("layout", layout)}
                {hidden("kept", "false")}
                {hidden("forgets", "true")}
                {fields}
                {WHY_FORGET.view(form)}
                <button class="button button-quiet" r#type="submit" data-testid="house-forget">{say!("house.forget")}</button>
            </form>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_both_ticked_and_written_is_chosen_once() {
        let fields = [
            ("key", "k"),
            ("layout", "00000000-0000-0000-0000-000000000007"),
            ("seat", "A2"),
            ("seat", "Circle, left B1"),
            ("names", "A1, A2;\r\nB 3 ,"),
            ("reason", "Press"),
            ("kept", "true"),
        ];
        let request = standing_request(&Form::new(fields)).expect("it can be read");
        assert_eq!(request.seats, ["A1", "A2", "B 3", "Circle, left B1"]);
        assert!(request.kept && request.layout.as_u128() == 7);
        assert!(standing_request(&Form::new(fields[2..].iter().copied())).is_err(), "of which room?");
    }
}
