//! Sales per seat, drawn at the seats' positions.
//!
//! A dot per seat. The more often it was sold, the larger and stronger it is, in five steps, so that size shows it
//! without colour. One path per step keeps an arena's drawing small. The table lists rows, the CSV file all seats.

use domain::api::reports::OccupancyReport;
use domain::layout::{FocusKind, Layout};
use domain::seats::SeatIndex;
use language::say;
use leptos::prelude::*;

use super::charts::{nothing, numbers, whole};
use crate::markup::{IntoMarkup, Markup};

/// Steps for sold seats. 0 is a seat that was never sold.
const STEPS: u32 = 5;
/// Most rows in the table; the file has all.
const MAX_ROWS: usize = 200;

type Position = (i32, i32);

fn sold_of(report: &OccupancyReport, seat: SeatIndex) -> u32 {
    report.sold.get(seat as usize).copied().unwrap_or(0)
}

/// The step of a seat sold this often in this many shows: 0 for never, 5 for (nearly) always.
fn step_of(sold: u32, shows: u32) -> u32 {
    if sold == 0 {
        return 0;
    }
    (u64::from(sold) * u64::from(STEPS)).div_ceil(u64::from(shows.max(1))).clamp(1, u64::from(STEPS)) as u32
}

/// The seats of a step as one path: lines of zero length, drawn as dots by round ends.
fn path_of(seats: &[(Position, u32)], shows: u32, step: u32) -> String {
    use std::fmt::Write;
    let mut path = String::new();
    for ((x, y), sold) in seats {
        if step_of(*sold, shows) == step {
            // Writing to a string never fails.
            let _ = write!(path, "M{x} {y}h0");
        }
    }
    path
}

pub(super) fn view(report: &OccupancyReport, room: Option<&Layout>) -> Markup {
    let (Some(room), Some(screen)) = (room, &report.screen) else { return nothing() };
    let seats = (0..room.seat_count()).filter_map(|seat| Some((room.place(seat)?.0, sold_of(report, seat))));
    let seats: Vec<(Position, u32)> = seats.collect();
    let shows = u32::try_from(report.shows).unwrap_or(u32::MAX);
    let all: u64 = seats.iter().map(|(_, sold)| u64::from(*sold)).sum();
    let places = u64::from(shows) * seats.len() as u64;
    let percent = (all * 100 + places / 2).checked_div(places).unwrap_or(0);
    let described = say!(
        "reports.room_described",
        screen = &screen.name,
        shows = report.shows,
        percent = i64::try_from(percent).unwrap_or(100)
    );
    let steps = (0..=STEPS).map(|step| {
        let path = path_of(&seats, shows, step);
        (!path.is_empty()).then(|| view! { <path class=format!("heat heat-{step}") d=path /> })
    });
    let steps = steps.collect_view();
    let size = room.size();
    let other = (report.shows_in_other_rooms > 0).then(|| {
        view! { <p class="quiet small">{say!("reports.other_rooms", count = report.shows_in_other_rooms)}</p> }
    });
    view! {
        <svg class="chart chart-room" viewBox=format!("0 0 {} {}", size.0, size.1) role="img"
            aria-labelledby="chart-room-name" aria-describedby="chart-room-description" data-testid="chart-room">
            <title id="chart-room-name">{say!("reports.occupancy")}</title>
            <desc id="chart-room-description">{described.clone()}</desc>
            {front(room)}
            {steps}
        </svg>
        {legend()}
        <p class="quiet small">{described}</p>
        {other}
        {numbers("reports.by_row", &["reports.row", "reports.seats", "reports.sold", "reports.full"], rows(room, report))}
    }
    .into_markup()
}

/// A line where the screen or stage is; the outline of a field or stage in the round.
fn front(room: &Layout) -> Option<Markup> {
    let focus = room.focus();
    let words = match focus.kind {
        FocusKind::Screen => say!("reports.front_screen"),
        FocusKind::Stage => say!("reports.front_stage"),
        FocusKind::Field => say!("reports.front_field"),
        FocusKind::None => return None,
    };
    let ([x, y], half) = (focus.at, focus.width / 2);
    let reach = if focus.is_in_front() { 0 } else { focus.depth / 2 };
    let (left, top, right, bottom) = (x - half, y - reach, x + half, y + reach);
    let outline = format!("M{left} {top}H{right}V{bottom}H{left}Z");
    Some(view! { <path class="heat-front" d=outline><title>{words}</title></path> }.into_markup())
}

fn legend() -> Markup {
    let entry = |step: u32| {
        let words = match step {
            0 => say!("reports.never"),
            step => say!("reports.up_to", percent = step * 100 / STEPS),
        };
        view! {
            <li>
                <svg class="heat-swatch" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
                    <path class=format!("heat heat-{step}") d="M10 10h0" />
                </svg>
                {words}
            </li>
        }
    };
    view! { <ul class="heat-legend">{(0..=STEPS).map(entry).collect_view()}</ul> }.into_markup()
}

fn rows(room: &Layout, report: &OccupancyReport) -> impl IntoView + use<> {
    let rows = room.rows().filter_map(|row| {
        let first = room.seat(row.start)?;
        let label = format!("{} {}", first.zone, first.row).trim().to_owned();
        let seats = i64::from(row.end - row.start);
        let sold = i64::from(row.map(|seat| sold_of(report, seat)).sum::<u32>());
        let percent = sold * 100 / (seats * report.shows.max(1)).max(1);
        Some(view! {
            <tr>
                <th scope="row"><bdi>{label}</bdi></th>
                <td>{whole(seats)}</td>
                <td>{whole(sold)}</td>
                <td>{say!("reports.percent", percent = percent)}</td>
            </tr>
        })
    });
    rows.take(MAX_ROWS).collect_view()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_drawn_in_the_step_of_its_sales() {
        assert_eq!([0, 1, 2, 3, 5, 10].map(|sold| step_of(sold, 10)), [0, 1, 1, 2, 3, 5]);
        assert_eq!((step_of(1, 1), step_of(1, 1_000), step_of(7, 0)), (5, 1, 5));
        let seats = [((10, 20), 0), ((30, 20), 2), ((50, 20), 0)];
        assert_eq!((path_of(&seats, 2, 0), path_of(&seats, 2, 5)), ("M10 20h0M50 20h0".into(), "M30 20h0".into()));
    }
}
