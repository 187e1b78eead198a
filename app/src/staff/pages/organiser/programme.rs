//! Seven days of a theatre: planned, open and called-off shows.

use domain::api::organiser::OrganisedShow;
use leptos::prelude::*;

use super::{Desk, Tab, head, page, sales_words};
use crate::language::{self, Moment};
use crate::say;
use crate::shell::{Head, Page};

/// The page of the programme.
#[derive(Clone, Debug)]
pub struct Programme {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// First day, `2026-12-07`.
    pub from: String,
    /// Seven days earlier.
    pub before: String,
    /// Seven days later.
    pub after: String,
    /// Shows in order of their start.
    pub shows: Vec<OrganisedShow>,
}

impl Page for Programme {
    fn head(&self) -> Head {
        head(say!("organiser.programme"))
    }

    fn view(self) -> AnyView {
        let base = format!("/staff/{}/shows", self.desk.theatre);
        let nothing = self.shows.is_empty().then(|| view! { <p class="quiet">{say!("organiser.nothing_planned")}</p> });
        let mut days: Vec<(String, Vec<OrganisedShow>)> = Vec::new();
        for show in self.shows {
            let day = show.starts_local.get(..10).unwrap_or_default().to_owned();
            match days.last_mut().filter(|(last, _)| *last == day) {
                Some((_, shows)) => shows.push(show),
                None => days.push((day, vec![show])),
            }
        }
        let days = days.into_iter().map(|(day, shows)| {
            let name = Moment::parse(&day).map_or(day, |moment| moment.date(language::current()));
            let lines = shows.into_iter().map(|show| line(&base, show)).collect_view();
            view! {
                <section class="organiser-day">
                    <h2>{name}</h2>
                    <ul class="organiser-list">{lines}</ul>
                </section>
            }
        });
        let days = days.collect_view();
        let content = view! {
            <nav class="organiser-ways" aria-label=say!("organiser.weeks_nav")>
                <a class="button button-quiet" href=format!("{base}?from={}", self.before)>{say!("organiser.week_before")}</a>
                <form class="organiser-jump" action=base.clone() method="get">
                    <label for="from">{say!("organiser.from")}</label>
                    <input id="from" name="from" r#type="date" value=self.from />
                    <button class="button button-quiet" r#type="submit">{say!("organiser.go")}</button>
                </form>
                <a class="button button-quiet" href=format!("{base}?from={}", self.after)>{say!("organiser.week_after")}</a>
            </nav>
            {nothing}
            {days}
        };
        page(&self.desk, Tab::Programme, say!("organiser.programme"), content.into_any())
    }
}

fn line(base: &str, show: OrganisedShow) -> impl IntoView + use<> {
    let state = match &show.cancellation {
        Some(_) => say!("organiser.called_off"),
        None => sales_words(show.terms.sales),
    };
    let time = Moment::parse(&show.starts_local).map_or(show.starts_local, |moment| moment.time(language::current()));
    view! {
        <li>
            <a class="card organiser-show" href=format!("{base}/{}", show.id) data-testid="organised-show" data-called-off=show.cancellation.is_some().then_some("true")>
                <strong>{time}</strong>
                <span><bdi>{show.title}</bdi>" "<span class="quiet small"><bdi>{show.language}</bdi>" · "{show.format}</span></span>
                <span class="quiet"><bdi>{show.screen_name}</bdi></span>
                <span>{say!("organiser.sold", sold = show.sold, seats = show.seats)}</span>
                <span class="organiser-state">{state}</span>
            </a>
        </li>
    }
}
