//! What a theatre sold: over time, by channel, category, film and show, how full a room was, how far people came, and
//! what was taken and given back. Charts are drawings of the server, each with its numbers in a table beside it.

mod charts;
mod money;
mod room;
mod tables;

pub use room::{RoomDrawing, RoomRow};

use domain::api_reports::{FunnelReport, OccupancyReport, ReportDays, SalesReport, SoldLine, TakingsReport};
use leptos::prelude::*;

use super::{Desk, frame};
use crate::language::{self, Moment};
use crate::say;
use crate::shell::{Head, Page};

/// The page of reports.
#[derive(Clone, Debug)]
pub struct Reports {
    /// Whose.
    pub desk: Desk,
    /// The days as they stand in the form.
    pub from: String,
    /// The last of them.
    pub to: String,
    /// What there is to tell, or why there is nothing.
    pub told: Result<Box<Told>, String>,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Told {
    /// Every day of the report, `2026-11-21`.
    pub calendar: Vec<String>,
    /// What was sold.
    pub sales: SalesReport,
    /// How far people came.
    pub funnel: FunnelReport,
    /// What was taken and given back.
    pub takings: TakingsReport,
    /// How full a room was.
    pub occupancy: OccupancyReport,
    /// The room, if there was a show in it.
    pub room: Option<RoomDrawing>,
}

impl Page for Reports {
    fn head(&self) -> Head {
        Head { title: say!("reports.title"), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let Self { desk, from, to, told } = self;
        let screens = told.as_ref().map_or_else(|_| Vec::new(), |told| told.occupancy.screens.clone());
        let screen = told.as_ref().ok().and_then(|told| told.occupancy.screen.as_ref().map(|screen| screen.id.clone()));
        let form = days_form(from, to, screens, screen);
        let theatre = desk.theatre.clone();
        let content = match told {
            Err(why) => {
                view! { <p class="account-trouble" role="alert" data-testid="reports-trouble">{why}</p> }.into_any()
            }
            Ok(told) => told_view(&theatre, *told),
        };
        frame(&desk, say!("reports.title"), view! { <div class="reports">{form}{content}</div> })
    }
}

fn days_form(
    from: String,
    to: String,
    screens: Vec<domain::api_reports::ReportScreen>,
    current: Option<String>,
) -> impl IntoView {
    let options = screens.into_iter().map(|screen| {
        let is_current = current.as_deref() == Some(screen.id.as_str());
        view! { <option value=screen.id selected=is_current>{screen.name}</option> }
    });
    let options: Vec<_> = options.collect();
    let room = (!options.is_empty()).then(|| {
        view! {
            <div class="field">
                <label for="report-screen">{say!("reports.screen")}</label>
                <select id="report-screen" name="screen">{options}</select>
            </div>
        }
    });
    view! {
        <form class="reports-form card" method="get">
            <div class="field">
                <label for="report-from">{say!("reports.from")}</label>
                <input id="report-from" name="from" r#type="date" value=from required />
            </div>
            <div class="field">
                <label for="report-to">{say!("reports.to")}</label>
                <input id="report-to" name="to" r#type="date" value=to required />
            </div>
            {room}
            <button class="button" r#type="submit" data-testid="reports-show">{say!("reports.show")}</button>
        </form>
    }
}

fn told_view(theatre: &str, told: Told) -> AnyView {
    let Told { calendar, sales, funnel, takings, occupancy, room } = told;
    let link = |table: &str| csv_link(theatre, table, &sales.days, None);
    let seats_link =
        csv_link(theatre, "seats", &sales.days, occupancy.screen.as_ref().map(|screen| screen.id.as_str()));
    let days = section("reports-days", say!("reports.over_time"), charts::over_time(&calendar, &sales), link("days"));
    let money = section("reports-takings", say!("reports.takings"), money::view(&calendar, &takings), link("takings"));
    let steps = section("reports-funnel", say!("reports.funnel"), tables::funnel(&funnel), link("funnel"));
    let full = section("reports-room", say!("reports.occupancy"), room::view(&occupancy, room), seats_link);
    let by = |id: &'static str, title: String, lines: &[SoldLine], table: &str| {
        section(id, title, tables::sold(lines), link(table))
    };
    let channels = sales.by_channel.iter().map(|line| {
        let mut line = line.clone();
        line.name = channel_words(&line.name);
        line
    });
    let channels: Vec<_> = channels.collect();
    view! {
        <p class="quiet small">{say!("reports.zone", zone = &sales.days.time_zone)}</p>
        {tables::totals(&sales, &takings)}
        {days}
        {money}
        {full}
        {steps}
        <div class="reports-pair">
            {by("reports-channels", say!("reports.by_channel"), &channels, "channels")}
            {by("reports-categories", say!("reports.by_category"), &sales.by_category, "categories")}
        </div>
        {by("reports-films", say!("reports.by_film"), &sales.by_film, "films")}
        {section("reports-shows", say!("reports.by_show"), tables::shows(&sales.by_show), link("shows"))}
    }
    .into_any()
}

fn section(id: &'static str, title: String, content: AnyView, file: AnyView) -> AnyView {
    let heading = format!("{id}-title");
    let named_by = heading.clone();
    view! {
        <section class="reports-part card" aria-labelledby=named_by data-testid=id>
            <header>
                <h2 id=heading>{title}</h2>
                {file}
            </header>
            {content}
        </section>
    }
    .into_any()
}

/// The same as a file; said in full to those who hear one link after another.
fn csv_link(theatre: &str, table: &str, days: &ReportDays, screen: Option<&str>) -> AnyView {
    // Ids of screens come from operators: whatever is in one stays in its place of the address.
    let screen = screen.map(|id| format!("&screen={}", percent_encoded(id))).unwrap_or_default();
    let href = format!("/api/v1/theatres/{theatre}/reports/csv/{table}?from={}&to={}{screen}", days.from, days.to);
    view! { <a class="reports-file" href=href download="" data-testid=format!("csv-{table}")>{say!("reports.csv")}</a> }
        .into_any()
}

/// Whatever is not unreserved (RFC 3986, 2.3) in hex.
fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

/// Channels we know have a name; a new one is told as it is stored.
fn channel_words(channel: &str) -> String {
    match channel {
        "online" => say!("reports.channel_online"),
        "box_office" => say!("reports.channel_box_office"),
        other => other.to_owned(),
    }
}

/// `21 Nov`.
fn day_words(day: &str) -> String {
    Moment::parse(day).map_or_else(|| day.to_owned(), |moment| moment.day_and_month(language::current()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_an_id_stays_in_its_place_of_an_address() {
        assert_eq!(percent_encoded("screen-1"), "screen-1");
        assert_eq!(percent_encoded("a&b=c#ü"), "a%26b%3Dc%23%C3%BC");
    }
}
