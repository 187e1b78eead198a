//! A drawing of a room's seats, made by the server. One path per category keeps an arena's page small; rows and numbers
//! are shown if there is space.

use std::fmt::Write;

use domain::api::PlanView;
use domain::wire::Dot;
use leptos::prelude::*;

use crate::say;

/// Number of category colours.
const COLOURS: usize = 8;
/// Distance of a row's letter from its first seat, plan units.
const LETTER_DISTANCE: i32 = 20;
/// Characters of a seat number that fit into a dot at the normal size.
const MAX_NUMBER_CHARS: usize = 3;

/// A room to draw.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Its sections, and its rows if it is small.
    pub plan: PlanView,
    /// The positions of its seats.
    pub dots: Vec<Dot>,
}

impl Preview {
    pub(super) fn view(self) -> impl IntoView {
        let Self { plan, dots } = self;
        let paths = paths(&dots).into_iter().enumerate().filter(|(_, path)| !path.is_empty());
        let paths =
            paths.map(|(colour, path)| view! { <path class=format!("preview-seats cat-{colour}") d=path></path> });
        let [x, y, width] = plan.focus_at;
        let (left, right) = (x - width / 2, x + width / 2);
        let names = plan.sections.iter().filter(|_| plan.overview).map(|section| {
            let [left, top, right, bottom] = section.bounds;
            let name = [section.name.as_str(), section.part.as_str()].join(" ").trim().to_owned();
            let size = ((right - left) / 6).clamp(24, plan.width / 30 + 24);
            view! { <text class="preview-section" x=i32::midpoint(left, right) y=i32::midpoint(top, bottom) font-size=size>{name}</text> }
        });
        let names = names.collect_view();
        let rows = plan.sections.iter().flat_map(|section| &section.rows).map(|row| {
            let (at_x, at_y) = (row.x.first().copied().unwrap_or(0), row.y.first().copied().unwrap_or(0));
            let next = row.x.get(1).copied().unwrap_or(at_x + 1);
            let letter = if next >= at_x { at_x - LETTER_DISTANCE } else { at_x + LETTER_DISTANCE };
            let seats = row.numbers.iter().zip(row.x.iter().zip(&row.y)).map(|(number, (x, y))| {
                let is_long = number.chars().count() > MAX_NUMBER_CHARS;
                view! { <text class="preview-number" class:preview-number-long=is_long x=*x y=*y>{number.clone()}</text> }
            });
            view! {
                <text class="preview-row" x=letter y=at_y>{row.label.clone()}</text>
                {seats.collect_view()}
            }
        });
        let rows = rows.collect_view();
        let label = say!("organiser.preview", seats = plan.seat_count);
        view! {
            <figure class="preview" data-testid="preview">
                <svg role="img" aria-label=label viewBox=format!("0 0 {} {}", plan.width, plan.height)>
                    <path class="preview-focus" d=format!("M{left} {y}Q{x} {} {right} {y}", y - 20)></path>
                    {paths.collect_view()}
                    {rows}
                    {names}
                </svg>
            </figure>
        }
    }
}

/// A path per colour: each dot is a line of zero length with round ends.
fn paths(dots: &[Dot]) -> Vec<String> {
    let mut paths = vec![String::new(); COLOURS];
    for dot in dots {
        // Writing to a string never fails.
        let _ = write!(paths[usize::from(dot.category) % COLOURS], "M{} {}h0", dot.x, dot.y);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seat_is_a_dot_in_the_path_of_its_category() {
        let dot = |x, category| Dot { x, y: 7, category };
        let paths = paths(&[dot(10, 0), dot(30, 9), dot(50, 1)]);
        assert_eq!((paths[0].as_str(), paths[1].as_str()), ("M10 7h0", "M30 7h0M50 7h0"));
        assert!(paths[2..].iter().all(String::is_empty));
    }
}
