//! JSON of the organiser's endpoints: rooms, weeks of shows, prices and terms of sale.

mod films;
mod programme;
mod rooms;
mod standing;
mod tariffs;
mod terms;

pub use films::{FilmChoice, FilmRequest};
pub use programme::{
    CancelShowRequest, CancellationView, DayPattern, DefectiveSeatsRequest, DefectiveSeatsView, OrganisedShow,
    PlannedShow, PlannedShows, ShowsRequest, SkippedTimeHandling, WeekQuery,
};
pub use rooms::{
    FileForm, FileQuery, LayoutCategory, LayoutImport, LayoutView, PublishRequest, ScreenRequest, ScreenView,
};
pub use standing::{ScreenHouseSeatView, ScreenHouseSeats, ScreenHouseSeatsRequest};
pub use tariffs::{TariffRequest, TariffView};
pub use terms::{Sales, TermsOfSale, TermsRequest};
