//! What is written about a theatre, and one more of them. Plain forms.

use domain::api_catalogue::CityView;
use domain::api_theatres::ManagedTheatre;
use leptos::prelude::*;

use super::{Desk, frame};
use crate::say;
use crate::shell::{Half, Head, Page};

/// The page of one theatre.
#[derive(Clone, Debug)]
pub struct TheatrePage {
    /// Who, where.
    pub desk: Desk,
    /// What is written about it.
    pub theatre: ManagedTheatre,
    /// Idempotency key of the change.
    pub key: String,
    /// Whether something was just done.
    pub done: bool,
    /// What stood in the way.
    pub trouble: Option<String>,
}

impl Page for TheatrePage {
    fn head(&self) -> Head {
        Head { title: say!("theatres.title"), private: true, half: Half::Staff, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let Self { desk, theatre, key, done, trouble } = self;
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
                {field("reason", say!("organiser.reason"), String::new(), 300)}
                <button class="button" r#type="submit" data-testid="change-theatre">{say!("organiser.change")}</button>
            </form>
        };
        frame(&desk, say!("theatres.title"), content)
    }
}

fn trouble_view(words: String) -> impl IntoView {
    view! { <p class="account-trouble" role="alert" data-testid="theatre-trouble">{words}</p> }
}

/// One more theatre, as whoever manages all of them writes it down.
#[derive(Clone, Debug)]
pub struct NewTheatre {
    /// Cities that are there.
    pub cities: Vec<CityView>,
    /// Idempotency key.
    pub key: String,
    /// What stood in the way.
    pub trouble: Option<String>,
}

impl NewTheatre {
    pub(super) fn view(self) -> impl IntoView {
        let cities = self.cities.into_iter().map(|city| view! { <option value=city.id>{city.name}</option> });
        let cities = cities.collect_view();
        let empty = String::new;
        let optional = |name: &'static str, label: String| {
            view! {
                <div class="field">
                    <label for=name>{label}</label>
                    <input id=name name=name r#type="text" maxlength="120" />
                </div>
            }
        };
        view! {
            <section class="card organiser-card" aria-labelledby="new-theatre">
                <h2 id="new-theatre">{say!("theatres.new")}</h2>
                {self.trouble.map(trouble_view)}
                <form class="organiser-form" action="/staff/theatres" method="post">
                    <input r#type="hidden" name="key" value=self.key />
                    {field("name", say!("theatres.name"), empty(), 120)}
                    {field("address", say!("theatres.address"), empty(), 2_000)}
                    {field("currency", say!("theatres.currency"), empty(), 3)}
                    <div class="field">
                        <label for="city">{say!("theatres.city")}</label>
                        <select id="city" name="city">
                            <option value="">{say!("theatres.new_city")}</option>
                            {cities}
                        </select>
                    </div>
                    {optional("city_name", say!("theatres.city_name"))}
                    {optional("country", say!("theatres.country"))}
                    {optional("time_zone", say!("theatres.time_zone"))}
                    {field("reason", say!("organiser.reason"), empty(), 300)}
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
