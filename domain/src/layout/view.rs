//! The plan of a show's room with prices, for the browser.

use uuid::Uuid;

use super::Layout;
use super::room::{FocusSide, SeatRow, Zone};
use crate::VariantName;
use crate::api::{CategoryView, OVERVIEW_ABOVE_SEATS, PlanView, RowView, SectionView};
use crate::money::Money;
use crate::pricing::PriceList;

/// Reason why a plan cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The show has no price for a category of its room.
    #[error("there is no price for category {0:?}")]
    Unpriced(String),
    /// The requested section does not exist.
    #[error("the room has {count} sections, numbered from 0; there is no section {section}")]
    NoSuchSection {
        /// The requested section.
        section: usize,
        /// Number of sections.
        count: usize,
    },
}

impl Layout {
    /// Builds the plan for one show, without its areas, whose capacity depends on the show. Rows are included for all
    /// sections of a room with up to [`OVERVIEW_ABOVE_SEATS`] seats, for none of a larger room (its overview), or only
    /// for `section`.
    ///
    /// # Errors
    /// [`PlanError`] for a category without a price or a section that does not exist.
    pub fn plan_view(&self, show: Uuid, prices: &PriceList, section: Option<usize>) -> Result<PlanView, PlanError> {
        let room = &self.room;
        if let Some(section) = section.filter(|section| *section >= room.zones.len()) {
            return Err(PlanError::NoSuchSection { section, count: room.zones.len() });
        }
        let categories = self.category_views(prices)?;
        let overview = self.seat_count() > OVERVIEW_ABOVE_SEATS;
        let sections = room.zones.iter().enumerate().map(|(number, zone)| SectionView {
            name: room.section_name(number).to_owned(),
            part: zone.part.clone(),
            first: zone.first,
            count: zone.count,
            bounds: zone.bounds,
            category: self.cheapest(zone, &categories),
            rows: if section.map_or(!overview, |wanted| wanted == number) {
                room.rows[zone.rows.clone()].iter().map(|row| self.row_view(row)).collect()
            } else {
                Vec::new()
            },
        });
        Ok(PlanView {
            show,
            seat_count: self.seat_count(),
            width: room.width,
            height: room.height,
            focus: room.focus.kind.as_str().to_owned(),
            focus_at: [room.focus.at[0], room.focus.at[1], room.focus.width],
            focus_depth: room.focus.depth,
            is_round: room.focus.side == FocusSide::Round,
            shapes: room.shapes.clone(),
            sections: sections.collect(),
            categories,
            overview,
            areas: Vec::new(),
            room: None,
        })
    }

    /// Returns the price of a seat; `None` if the seat or a price for it does not exist.
    #[must_use]
    pub fn price(&self, index: crate::seats::SeatIndex, prices: &PriceList) -> Option<Money> {
        let seat = self.room.seats.get(index as usize)?;
        prices.price(&self.room.categories[usize::from(seat.category)].name)
    }

    fn category_views(&self, prices: &PriceList) -> Result<Vec<CategoryView>, PlanError> {
        let view = |category: &super::Category| {
            Ok(CategoryView {
                name: category.name.clone(),
                label: category.label().to_owned(),
                kind: category.kind,
                price: prices.price(&category.name).ok_or_else(|| PlanError::Unpriced(category.name.clone()))?,
            })
        };
        self.room.categories.iter().map(view).collect()
    }

    /// Returns the cheapest category among a zone's seats, the first one in case of a tie.
    fn cheapest(&self, zone: &Zone, categories: &[CategoryView]) -> u8 {
        let from = zone.first as usize;
        let seats = &self.room.seats[from..from + zone.count as usize];
        let price = |category: u8| (categories[usize::from(category)].price.minor, category);
        seats.iter().map(|seat| seat.category).min_by_key(|category| price(*category)).unwrap_or(0)
    }

    fn row_view(&self, row: &SeatRow) -> RowView {
        let from = row.first as usize;
        let seats = &self.room.seats[from..from + row.count as usize];
        RowView {
            label: row.label.clone(),
            first: row.first,
            numbers: seats.iter().map(|seat| seat.number.clone()).collect(),
            x: seats.iter().map(|seat| seat.x).collect(),
            y: seats.iter().map(|seat| seat.y).collect(),
            category: seats.iter().map(|seat| seat.category).collect(),
            turn: if seats.iter().any(|seat| seat.turn != 0) {
                seats.iter().map(|seat| seat.turn).collect()
            } else {
                Vec::new()
            },
        }
    }
}
