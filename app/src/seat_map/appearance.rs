//! The appearance of a seat to one visitor, and its symbols, defined once and referenced by every seat.
//!
//! Shapes show the state: free is a chair, sold is a chair with a head, held is a hatched square, not for sale is a
//! cross, and the visitor's own is a tick. Colour only repeats it. Categories have a mark on the cushion besides their
//! colour: 64 pairs of colour and mark. Units: a seat is 20 wide and centred on the origin.

use domain::api::SeatKind;
use domain::seats::SeatState;
use language::say;
use leptos::prelude::*;
use strum::VariantArray;

#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum SeatAppearance {
    /// Free.
    Available,
    /// In another visitor's hold.
    Locked,
    /// Sold.
    Booked,
    /// Not for sale.
    Blocked,
    /// Held by this visitor.
    Mine,
    /// Tapped by this visitor, not granted yet.
    Asked,
    /// Free, and proposed by the party finder.
    Proposed,
}

impl SeatAppearance {
    /// The `data-state` attribute. A requested seat is painted as the visitor's own at once.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Locked => "locked",
            Self::Booked => "booked",
            Self::Blocked => "blocked",
            Self::Mine | Self::Asked => "mine",
            Self::Proposed => "proposed",
        }
    }

    /// The end of the seat's name for a screen reader.
    pub fn in_words(self) -> String {
        say!(match self {
            Self::Available => "map.state_available",
            Self::Locked => "map.state_locked",
            Self::Booked => "map.state_booked",
            Self::Blocked => "map.state_blocked",
            Self::Mine => "map.state_mine",
            Self::Asked => "map.state_asked",
            Self::Proposed => "map.state_proposed",
        })
    }

    /// Returns true if the seat can no longer be taken. A locked seat may become free at any moment, and a press
    /// explains that, so it is not disabled.
    pub const fn is_out_of_reach(self) -> bool {
        matches!(self, Self::Booked | Self::Blocked)
    }

    /// Returns true if it is drawn as a chair, which faces a direction.
    pub const fn is_chair(self) -> bool {
        matches!(self, Self::Available | Self::Booked)
    }

    /// Returns true if a tap takes or releases the seat. Taps on other seats only show an explanation.
    pub const fn can_be_tapped(self) -> bool {
        matches!(self, Self::Available | Self::Proposed | Self::Mine | Self::Asked)
    }
}

impl From<SeatState> for SeatAppearance {
    fn from(state: SeatState) -> Self {
        match state {
            SeatState::Available => Self::Available,
            SeatState::Locked => Self::Locked,
            SeatState::Booked => Self::Booked,
            SeatState::Blocked => Self::Blocked,
        }
    }
}

/// Number of category colours, and of marks.
pub const CATEGORY_COLOURS: u8 = 8;

/// The mark of a category. The first eight categories differ by colour and mark; a further one that has the colour of
/// another has a different mark.
pub const fn mark_of(category: u8) -> u8 {
    (category % CATEGORY_COLOURS + category / CATEGORY_COLOURS) % CATEGORY_COLOURS
}

/// The bit of a category in the filter. The 65th category shares that of the first.
pub const fn filter_bit(category: u8) -> u64 {
    1 << (category % 64)
}

pub fn glyph(look: SeatAppearance, kind: SeatKind) -> &'static str {
    match look {
        SeatAppearance::Available => kind.symbol(),
        SeatAppearance::Locked => "#glyph-locked",
        SeatAppearance::Booked => "#glyph-booked",
        SeatAppearance::Blocked => "#glyph-blocked",
        SeatAppearance::Mine => "#glyph-mine",
        SeatAppearance::Asked => "#glyph-asked",
        SeatAppearance::Proposed => "#glyph-proposed",
    }
}

/// The symbols that do not depend on the kind: states and marks.
const STATES_AND_MARKS: &str = r##"<g id="glyph-locked"><rect class="g-held" x="-7.2" y="-7.2" width="14.4" height="14.4" rx="4"/><path class="g-held-hatch" d="M-4.6 1.6 1.6-4.6M-4.6 5 5-4.6M-1.6 5 5-1.6"/></g>
<g id="glyph-booked"><path class="g-sold" d="M-8-3v5.2A4.8 4.8 0 0 0-3.2 7h6.4A4.8 4.8 0 0 0 8 2.2V-3"/><circle class="g-sold-head" cy="-2.6" r="4.2"/></g>
<g id="glyph-blocked"><path class="g-cross" d="m-4-4 8 8m0-8-8 8"/></g>
<g id="glyph-mine"><rect class="g-mine" x="-9" y="-9" width="18" height="18" rx="5.4"/><path class="g-tick" d="m-4.2.4 3 3.1L4.4-3.3"/></g>
<g id="glyph-asked"><rect class="g-asked" x="-8.4" y="-8.4" width="16.8" height="16.8" rx="5"/><path class="g-tick g-tick-asked" d="m-4.2.4 3 3.1L4.4-3.3"/></g>
<g id="glyph-proposed"><rect class="g-asked" x="-9" y="-9" width="18" height="18" rx="5.4"/><circle class="g-mine" r="4.2"/></g>
<g id="mark-0"/>
<g id="mark-1"><path d="M-2.6-2.4h5.2"/></g>
<g id="mark-2"><path d="M-2.6-4h5.2M-2.6-.8h5.2"/></g>
<g id="mark-3"><path d="M0-2.4h.01" stroke-width="3.4"/></g>
<g id="mark-4"><path d="M0-4.8v4.8"/></g>
<g id="mark-5"><path d="M-2.4-1.2 0-3.6l2.4 2.4"/></g>
<g id="mark-6"><path d="M-1.7-4.6V.1M1.7-4.6V.1"/></g>
<g id="mark-7"><circle cy="-2.4" r="2"/></g>
"##;

/// All symbols: of free seats by kind, of other states, and the marks.
fn drawings() -> String {
    let mut out = String::from("<defs>\n");
    for kind in SeatKind::VARIANTS {
        let (id, shapes) = (kind.symbol().trim_start_matches('#'), kind.shapes());
        out.extend(["<g id=\"", id, "\">", shapes, "</g>\n"]);
    }
    out + STATES_AND_MARKS + "</defs>"
}

/// The symbol definitions, which draw nothing themselves.
pub fn definitions() -> impl IntoView {
    view! { <svg class="glyphs" width="0" height="0" aria-hidden="true" focusable="false" inner_html=drawings()></svg> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_categories_differ_by_colour_or_mark() {
        let mut pairs: Vec<(u8, u8)> =
            (0..64).map(|category| (category % CATEGORY_COLOURS, mark_of(category))).collect();
        assert!((0..8).all(|category| mark_of(category) == category));
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 64);
        assert!(mark_of(u8::MAX) < CATEGORY_COLOURS);
    }

    #[test]
    fn every_referenced_symbol_is_defined() {
        let drawings = drawings();
        for &look in SeatAppearance::VARIANTS {
            for &kind in SeatKind::VARIANTS {
                let name = glyph(look, kind).trim_start_matches('#');
                assert_eq!(drawings.matches(&format!("<g id=\"{name}\">")).count(), 1, "{name}");
            }
        }
        assert!((0..8).all(|mark| drawings.contains(&format!("<g id=\"mark-{mark}\""))));
    }
}
