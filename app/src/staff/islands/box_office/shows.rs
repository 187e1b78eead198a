//! The list of the day's shows: rendered by the server, then polled.

use domain::api::box_office::CounterShow;
use language::{current, say, time_of_day};
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use crate::browser::{calls, events};

const POLL_EVERY_MS: u32 = 3_000;

/// The day's shows with their occupancy.
#[island]
pub fn StaffShows(
    theatre: String,
    /// The day, `YYYY-MM-DD`; empty for today.
    date: String,
    /// The shows as the page was rendered.
    shows: Vec<CounterShow>,
    /// The booking being exchanged, if any: then only shows with free seats are listed.
    exchange: Option<Uuid>,
) -> impl IntoView {
    let shows = RwSignal::new(shows);
    let day = if date.is_empty() { date } else { format!("?date={date}") };
    let path = StoredValue::new(format!("/api/v1/theatres/{theatre}/box-office/shows{day}"));
    Effect::new(move |_| poll(path.get_value(), shows));
    let theatre = StoredValue::new(theatre);
    let listed = Memo::new(move |_| match exchange {
        Some(_) => shows.get().into_iter().filter(has_free_seats).collect(),
        None => shows.get(),
    });
    let over = Memo::new(move |_| listed.with(|shows| closed_count(shows)));
    let lines = move |shows: &[CounterShow]| {
        shows.iter().map(|show| line(&theatre.get_value(), show.clone(), exchange)).collect_view()
    };
    let nothing = move || match exchange {
        Some(_) => say!("box_office.no_free_shows"),
        None => say!("box_office.no_shows"),
    };
    view! {
        <div class="counter-shows">
            {move || listed.with(Vec::is_empty).then(|| view! { <p class="quiet">{nothing()}</p> })}
            {move || (over.get() > 0).then(|| view! {
                <details class="counter-earlier" data-testid="counter-earlier">
                    <summary>{move || say!("box_office.earlier", shows = over.get())}</summary>
                    <ul>{move || listed.with(|shows| lines(shows.get(..over.get()).unwrap_or_default()))}</ul>
                </details>
            })}
            <ul data-testid="counter-shows">
                {move || listed.with(|shows| lines(shows.get(over.get()..).unwrap_or_default()))}
            </ul>
        </div>
    }
}

/// Polls the shows. Without an answer the list stays until the next poll.
fn poll(path: String, shows: RwSignal<Vec<CounterShow>>) {
    events::every(POLL_EVERY_MS, move || {
        let path = path.clone();
        spawn_local(async move {
            if let Ok(fresh) = calls::get::<Vec<CounterShow>>(&path).await
                && shows.with_untracked(|known| *known != fresh)
            {
                shows.set(fresh);
            }
        });
    });
}

/// Number of leading shows whose booking has closed, which are collapsed while that of others has not.
fn closed_count(shows: &[CounterShow]) -> usize {
    shows.iter().position(|show| !show.has_closed).unwrap_or(0)
}

fn has_free_seats(show: &CounterShow) -> bool {
    show.is_on_sale && !show.is_called_off && show.seats.free + show.seats.places_free > 0
}

fn line(theatre: &str, show: CounterShow, exchange: Option<Uuid>) -> impl IntoView + use<> {
    let seats = show.seats;
    let left = seats.free + seats.places_free;
    let percent = seats.percent();
    let exchange = exchange.map(|booking| format!("?exchange={booking}")).unwrap_or_default();
    let href = format!("/staff/{theatre}/box-office/shows/{}{exchange}", show.id);
    let standing = match (show.is_called_off, show.is_on_sale) {
        (true, _) => Some(say!("box_office.called_off")),
        (false, false) => Some(say!("box_office.closed")),
        (false, true) => None,
    };
    view! {
        <li>
            <a class="card counter-show" href=href data-testid="counter-show" data-show=show.id.to_string()
                data-sold=seats.sold data-held=seats.held data-free=seats.free>
                <strong class="counter-show-time">{clock_time(&show.time)}</strong>
                <span class="counter-show-what">
                    <strong><bdi>{show.film}</bdi></strong>
                    <span class="quiet small"><bdi>{show.screen}</bdi>" · "<bdi>{show.kind}</bdi></span>
                </span>
                <span class="counter-show-seats">
                    <span>{say!("box_office.left", seats = left)}</span>
                    <span class="quiet small">
                        {say!("box_office.taken", sold = seats.sold, held = seats.held, kept = seats.kept)}
                    </span>
                    // The text beside it says the same.
                    <meter min="0" max="100" value=percent aria-hidden="true"></meter>
                </span>
                {standing.map(|words| view! { <span class="counter-show-state">{words}</span> })}
            </a>
        </li>
    }
}

/// Formats a time such as `20:15` in the page's language; returns any other text unchanged.
fn clock_time(time: &str) -> String {
    let minutes = time.split_once(':').and_then(|(hour, minute)| {
        let (hour, minute) = (hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    });
    minutes.map_or_else(|| time.to_owned(), |minutes| time_of_day(minutes, current()))
}

#[cfg(test)]
mod tests {
    use domain::api::box_office::Occupancy;

    use super::*;

    #[test]
    fn times_of_shows_are_written_as_in_the_language_of_the_page() {
        assert_eq!(["20:15", "23:99", "soon"].map(clock_time), ["20:15", "23:99", "soon"]);
        language::with_language(language::Language::Hindi, || assert_eq!(clock_time("20:15"), "8:15 pm"));
    }

    #[test]
    fn closed_shows_are_collapsed_while_others_are_not_closed() {
        let show = |has_closed| CounterShow {
            id: Uuid::nil(),
            film: String::new(),
            screen: String::new(),
            time: String::new(),
            starts_at_ms: 0,
            kind: String::new(),
            is_on_sale: false,
            has_closed,
            is_called_off: false,
            seats: Occupancy::default(),
        };
        let over = |closed: &[bool]| closed_count(&closed.iter().map(|closed| show(*closed)).collect::<Vec<_>>());
        assert_eq!(over(&[true, true, false, true, false]), 2, "one called off between others stays among them");
        assert_eq!(over(&[false, true]), 0);
        assert_eq!(over(&[true, true]), 0, "a day that is over shows what it was");
        assert_eq!(over(&[]), 0);
    }
}
