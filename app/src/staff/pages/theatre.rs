//! The entrance for staff, with their theatres and the sections they may open in each; and the forms of a theatre's data
//! and of a new theatre.

use domain::api::catalogue::CityView;
use domain::api::theatres::{ManagedTheatre, NewCity, TheatreChange, TheatreRequest};
use domain::roles::Role;
use language::{StaffError, say};
use leptos::prelude::*;

use super::fields::{Field, hidden};
use super::{Desk, Form, Section, StaffPage, staff_error_view};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page, WasmModule};

const NAME: Field = Field::text("name", "theatres.name").required().at_most(120);
const ADDRESS: Field = Field::text("address", "theatres.address").required().at_most(2_000).long();
const CURRENCY: Field = Field::text("currency", "theatres.currency").required().at_most(3);
const CITY_NAME: Field = Field::text("city_name", "theatres.city_name").at_most(120);
const COUNTRY: Field = Field::text("country", "theatres.country").at_most(120);
const TIME_ZONE: Field = Field::text("time_zone", "theatres.time_zone").at_most(120);

/// The change of a sent form.
///
/// # Errors
/// The version is no number.
pub fn theatre_change(form: &Form) -> Result<TheatreChange, String> {
    Ok(TheatreChange {
        name: form.text(NAME),
        address: form.text(ADDRESS),
        currency: form.text(CURRENCY),
        version: form.whole("version", "The version")?,
        reason: form.reason(),
    })
}

/// The new theatre of a sent form; in a new city only if no existing one was chosen.
#[must_use]
pub fn theatre_request(form: &Form) -> TheatreRequest {
    let city = Some(form.text("city")).filter(|city| !city.is_empty());
    let new_city =
        || NewCity { name: form.text(CITY_NAME), country: form.text(COUNTRY), time_zone: form.text(TIME_ZONE) };
    TheatreRequest {
        name: form.text(NAME),
        address: form.text(ADDRESS),
        new_city: city.is_none().then(new_city),
        city,
        currency: form.text(CURRENCY),
        reason: form.reason(),
    }
}

/// The page of one theatre. A refused form keeps its version, so that it never overwrites newer data.
pub fn theatre_page(desk: Desk, theatre: ManagedTheatre, refused: Option<Form>) -> impl Page {
    let content = move |desk: &Desk| {
        let ManagedTheatre { id, name, address, city_name, time_zone, currency, version, .. } = theatre;
        let place = format!("{city_name} · {time_zone}");
        let form = refused.unwrap_or_else(|| {
            let version = version.to_string();
            Form::new([("name", name), ("address", address), ("currency", currency), ("version", version)])
        });
        view! {
            {desk.done.then(|| view! { <p class="account-notice" role="status" data-testid="theatre-done">{say!("organiser.done")}</p> })}
            {desk.error_view("theatre-trouble")}
            <form class="organiser-form card organiser-card" action=format!("/staff/{id}/theatre") method="post">
                <p class="organiser-wide quiet"><bdi>{place}</bdi></p>
                {hidden("key", &desk.key)}
                {hidden("version", form.get("version"))}
                {NAME.view(&form)}
                {ADDRESS.view(&form)}
                {CURRENCY.view(&form)}
                <button class="button" r#type="submit" data-testid="change-theatre">{say!("organiser.change")}</button>
            </form>
        }
        .into_markup()
    };
    let head = Head { module: WasmModule::Staff, ..Head::default() };
    StaffPage::new(desk, head, || say!("theatres.title"), content)
}

/// The form of a new theatre, for accounts that manage all of them.
#[derive(Clone, Debug)]
pub struct NewTheatre {
    /// Existing cities.
    pub cities: Vec<CityView>,
    /// Idempotency key.
    pub key: String,
    /// The refused form with its error.
    pub refused: Option<(Form, StaffError)>,
}

impl NewTheatre {
    fn view(self) -> impl IntoView {
        let (form, error) = self.refused.unzip();
        let form = form.unwrap_or_default();
        let cities = self.cities.into_iter().map(|city| {
            let is_chosen = form.get("city") == city.id;
            view! { <option value=city.id selected=is_chosen>{city.name}</option> }
        });
        let cities = cities.collect_view();
        view! {
            <section class="card organiser-card" aria-labelledby="new-theatre">
                <h2 id="new-theatre">{say!("theatres.new")}</h2>
                {error.map(|error| staff_error_view(error, "theatre-trouble"))}
                <form class="organiser-form" action="/staff/theatres" method="post">
                    {hidden("key", self.key)}
                    {NAME.view(&form)}
                    {ADDRESS.view(&form)}
                    {CURRENCY.view(&form)}
                    <div class="field">
                        <label for="city">{say!("theatres.city")}</label>
                        <select id="city" name="city">
                            <option value="">{say!("theatres.new_city")}</option>
                            {cities}
                        </select>
                    </div>
                    {CITY_NAME.view(&form)}
                    {COUNTRY.view(&form)}
                    {TIME_ZONE.view(&form)}
                    <button class="button" r#type="submit" data-testid="new-theatre">{say!("theatres.create")}</button>
                </form>
            </section>
        }
    }
}

/// A theatre where the account works.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// Name of the theatre in addresses.
    pub theatre: String,
    /// Its name for people.
    pub name: String,
    /// The account's roles there.
    pub roles: Vec<Role>,
    /// Number of parked effects that wait for a manager.
    pub parked: i64,
}

/// The entrance.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// The theatres, by name.
    pub places: Vec<Workplace>,
    /// For accounts that manage all theatres: the form of a new one.
    pub new: Option<NewTheatre>,
}

impl Page for Entrance {
    fn head(&self) -> Head {
        Head { title: say!("staff.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let none = self.places.is_empty().then(|| view! { <p class="quiet">{say!("staff.nowhere")}</p> });
        let places = self.places.into_iter().map(|place| {
            let sections: Vec<Section> = Section::of(&place.roles).collect();
            let groups = sections.chunk_by(|one, next| one.group() == next.group()).map(|group| {
                let links = group.iter().map(|&section| {
                    let count = (section == Section::Parked && place.parked > 0).then_some(place.parked);
                    let words = count.map_or_else(|| section.words(), |count| say!("parked.count", count = count));
                    view! { <li><a href=section.href(&place.theatre) data-parked=count>{words}</a></li> }
                });
                let links = links.collect_view();
                view! { <div class="staff-group"><h3>{say!(group[0].group())}</h3><ul>{links}</ul></div> }
            });
            let groups = groups.collect_view();
            view! {
                <section class="card staff-place" data-testid="workplace">
                    <h2><bdi>{place.name}</bdi></h2>
                    {groups}
                </section>
            }
        });
        view! {
            <div class="staff">
                <header class="staff-head"><h1>{say!("staff.title")}</h1></header>
                {none}
                {places.collect_view()}
                {self.new.map(NewTheatre::view)}
            </div>
        }
        .into_markup()
    }
}
