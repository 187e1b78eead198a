//! The forms of a theatre's data and of a new theatre.

use domain::api::catalogue::CityView;
use domain::api::theatres::ManagedTheatre;
use leptos::prelude::*;
use serde::Deserialize;

use super::{Desk, frame};
use crate::language::Hindrance;
use crate::say;
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::in_the_way;

/// The page of one theatre.
#[derive(Clone, Debug)]
pub struct TheatrePage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// Its stored or typed data.
    pub theatre: ManagedTheatre,
    /// The typed reason.
    pub reason: String,
    /// Idempotency key of the change.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Hindrance>,
}

impl Page for TheatrePage {
    fn head(&self) -> Head {
        Head { title: say!("theatres.title"), is_private: true, module: WasmModule::Staff, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let Self { desk, theatre, reason, key, done, trouble } = self;
        let ManagedTheatre { id, name, address, city_name, time_zone, currency, version, .. } = theatre;
        let place = format!("{city_name} · {time_zone}");
        let content = view! {
            {done.then(|| view! { <p class="account-notice" role="status" data-testid="theatre-done">{say!("organiser.done")}</p> })}
            {trouble.map(trouble_view)}
            <form class="organiser-form card organiser-card" action=format!("/staff/{id}/theatre") method="post">
                <p class="organiser-wide quiet"><bdi>{place}</bdi></p>
                <input r#type="hidden" name="key" value=key />
                <input r#type="hidden" name="version" value=version.to_string() />
                {field("name", say!("theatres.name"), name, 120)}
                {field("address", say!("theatres.address"), address, 2_000)}
                {field("currency", say!("theatres.currency"), currency, 3)}
                {field("reason", say!("organiser.reason"), reason, 300)}
                <button class="button" r#type="submit" data-testid="change-theatre">{say!("organiser.change")}</button>
            </form>
        };
        frame(&desk, say!("theatres.title"), content)
    }
}

fn trouble_view(hindrance: Hindrance) -> impl IntoView {
    view! { <p class="account-trouble" role="alert" data-testid="theatre-trouble">{in_the_way(hindrance)}</p> }
}

/// The form of a new theatre as it was sent. Fields for a new city may be empty.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NewTheatreForm {
    /// Idempotency key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its street address.
    pub address: String,
    /// Its currency.
    pub currency: String,
    /// An existing city, or empty for a new one.
    #[serde(default)]
    pub city: String,
    /// Name of a new city.
    #[serde(default)]
    pub city_name: String,
    /// Country of a new city.
    #[serde(default)]
    pub country: String,
    /// Time zone of a new city.
    #[serde(default)]
    pub time_zone: String,
    /// The typed reason.
    pub reason: String,
}

/// The form of a new theatre, for accounts that manage all of them.
#[derive(Clone, Debug)]
pub struct NewTheatre {
    /// Existing cities.
    pub cities: Vec<CityView>,
    /// Idempotency key.
    pub key: String,
    /// The refused form with its error.
    pub refused: Option<(NewTheatreForm, Hindrance)>,
}

impl NewTheatre {
    pub(super) fn view(self) -> impl IntoView {
        let (typed, trouble) = self.refused.unzip();
        let typed = typed.unwrap_or_default();
        let cities = self.cities.into_iter().map(|city| {
            let is_chosen = typed.city == city.id;
            view! { <option value=city.id selected=is_chosen>{city.name}</option> }
        });
        let cities = cities.collect_view();
        let optional = |name: &'static str, label: String, value: String| {
            view! {
                <div class="field">
                    <label for=name>{label}</label>
                    <input id=name name=name r#type="text" maxlength="120" value=value />
                </div>
            }
        };
        view! {
            <section class="card organiser-card" aria-labelledby="new-theatre">
                <h2 id="new-theatre">{say!("theatres.new")}</h2>
                {trouble.map(trouble_view)}
                <form class="organiser-form" action="/staff/theatres" method="post">
                    <input r#type="hidden" name="key" value=self.key />
                    {field("name", say!("theatres.name"), typed.name, 120)}
                    {field("address", say!("theatres.address"), typed.address, 2_000)}
                    {field("currency", say!("theatres.currency"), typed.currency, 3)}
                    <div class="field">
                        <label for="city">{say!("theatres.city")}</label>
                        <select id="city" name="city">
                            <option value="">{say!("theatres.new_city")}</option>
                            {cities}
                        </select>
                    </div>
                    {optional("city_name", say!("theatres.city_name"), typed.city_name)}
                    {optional("country", say!("theatres.country"), typed.country)}
                    {optional("time_zone", say!("theatres.time_zone"), typed.time_zone)}
                    {field("reason", say!("organiser.reason"), typed.reason, 300)}
                    <button class="button" r#type="submit" data-testid="new-theatre">{say!("theatres.create")}</button>
                </form>
            </section>
        }
    }
}

fn field(name: &'static str, label: String, value: String, most: u32) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name r#type="text" maxlength=most.to_string() value=value required />
        </div>
    }
}
