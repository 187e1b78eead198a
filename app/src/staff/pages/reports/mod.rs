//! Sales reports of a theatre: over time, by channel, category, film and show, occupancy, funnel, takings and refunds.
//! The server draws the charts, each with a table of its numbers.

mod charts;
mod room;
mod tables;

use std::sync::Arc;

use domain::api::reports::{
    FunnelReport, OccupancyReport, ReportDays, ReportScreen, SalesReport, SoldLine, TakingsReport,
};
use domain::layout::Layout;
use language::{Moment, say};
use leptos::prelude::*;

use super::{Desk, page};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

/// All figures of a report.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Every day of the report, `2026-11-21`.
    pub calendar: Vec<String>,
    /// Sales.
    pub sales: SalesReport,
    /// The funnel from hold to ticket.
    pub funnel: FunnelReport,
    /// Takings and refunds.
    pub takings: TakingsReport,
    /// Occupancy of a room; `None` unless exactly one is chosen.
    pub occupancy: Option<OccupancyReport>,
    /// The room, if it had a show.
    pub room: Option<Arc<Layout>>,
}

/// The page of reports from a first to a last day, for the screen with this id or all of them. Refused days have no figures.
pub fn reports_page(
    desk: Desk,
    from: String,
    to: String,
    screens: Vec<ReportScreen>,
    screen: Option<String>,
    figures: Option<Figures>,
) -> impl Page {
    page(desk, "reports.title", move |desk| {
        let chosen = screens.iter().find(|known| Some(&known.id) == screen.as_ref()).cloned();
        let about = About { theatre: desk.theatre.clone(), has_screens: !screens.is_empty(), screen: chosen };
        let form = days_form(from, to, screens, about.screen.as_ref());
        let content = match figures {
            None => desk.error_view("reports-trouble").into_markup(),
            Some(figures) => figures_view(&about, figures),
        };
        view! { <div class="reports">{form}{content}</div> }.into_markup()
    })
}

struct About {
    theatre: String,
    has_screens: bool,
    /// The chosen screen; `None` for all.
    screen: Option<ReportScreen>,
}

fn days_form(
    from: String,
    to: String,
    screens: Vec<ReportScreen>,
    chosen: Option<&ReportScreen>,
) -> impl IntoView + use<> {
    let is_all = chosen.is_none();
    let options = screens.into_iter().map(|screen| {
        let is_chosen = chosen.is_some_and(|chosen| chosen.id == screen.id);
        view! { <option value=screen.id selected=is_chosen>{screen.name}</option> }
    });
    let options: Vec<_> = options.collect();
    let room = (!options.is_empty()).then(|| {
        view! {
            <div class="field">
                <label for="report-screen">{say!("reports.screen")}</label>
                <select id="report-screen" name="screen">
                    <option value="" selected=is_all>{say!("reports.all_screens")}</option>
                    {options}
                </select>
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

fn figures_view(about: &About, figures: Figures) -> Markup {
    let Figures { calendar, sales, funnel, takings, occupancy, room } = figures;
    let link = |table: &str| csv_link(&about.theatre, table, &sales.days, about.screen.as_ref());
    let which = about.screen.as_ref();
    let which =
        which.map_or_else(|| say!("reports.all_screens"), |only| say!("reports.only_screen", screen = &only.name));
    let days = section("reports-days", say!("reports.over_time"), charts::over_time(&calendar, &sales), link("days"));
    let money =
        section("reports-takings", say!("reports.takings"), charts::takings(&calendar, &takings), link("takings"));
    let steps = section("reports-funnel", say!("reports.funnel"), tables::funnel(&funnel), link("funnel"));
    let full = seats_section(about, &sales.days, occupancy.as_ref(), room.as_deref());
    let by = |id: &'static str, title: String, lines: &[SoldLine], table: &str| {
        let content = tables::sold(&title, lines);
        section(id, title, content, link(table))
    };
    let channels = sales.by_channel.iter().map(|line| {
        let mut line = line.clone();
        line.name = channel_words(&line.name);
        line
    });
    let channels: Vec<_> = channels.collect();
    view! {
        <p><strong data-testid="reports-which">{which}</strong>" · "<span class="quiet small">{say!("reports.zone", zone = &sales.days.time_zone)}</span></p>
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
        {section("reports-shows", say!("reports.by_show"), tables::shows(&say!("reports.by_show"), &sales.by_show), link("shows"))}
    }
    .into_markup()
}

/// Sales per seat, for one room only: several rooms have no seats in common.
fn seats_section(
    about: &About,
    days: &ReportDays,
    occupancy: Option<&OccupancyReport>,
    room: Option<&Layout>,
) -> Markup {
    const ID: &str = "reports-room";
    let Some((report, screen)) = occupancy.and_then(|report| Some((report, report.screen.as_ref()?))) else {
        let content = if about.has_screens {
            view! { <p class="quiet" data-testid="choose-screen">{say!("reports.choose_screen")}</p> }.into_markup()
        } else {
            charts::nothing()
        };
        return section(ID, say!("reports.occupancy"), content, ().into_markup());
    };
    let title = say!("reports.occupancy_of", screen = &screen.name);
    section(ID, title, room::view(report, room), csv_link(&about.theatre, "seats", days, Some(screen)))
}

fn section(id: &'static str, title: String, content: Markup, file: Markup) -> Markup {
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
    .into_markup()
}

/// A link to the same numbers as CSV, with the signs that a spreadsheet in the reader's language expects.
fn csv_link(theatre: &str, table: &str, days: &ReportDays, screen: Option<&ReportScreen>) -> Markup {
    // Ids of screens come from operators, so they are encoded.
    let screen = screen.map(|screen| format!("&screen={}", percent_encoded(&screen.id))).unwrap_or_default();
    let separator = if language::current().has_decimal_comma() { "&separator=semicolon" } else { "" };
    let days = format!("from={}&to={}", days.from, days.to);
    let href = format!("/api/v1/theatres/{theatre}/reports/csv/{table}?{days}{separator}{screen}");
    view! { <a class="reports-file" href=href download="" data-testid=format!("csv-{table}")>{say!("reports.csv")}</a> }
        .into_markup()
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3).
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

/// The name of a channel. Unknown channels are shown as stored.
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
    fn ids_are_percent_encoded_in_addresses() {
        assert_eq!(percent_encoded("screen-1"), "screen-1");
        assert_eq!(percent_encoded("a&b=c#ü"), "a%26b%3Dc%23%C3%BC");
    }
}
