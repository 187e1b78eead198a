//! JSON of the organiser's endpoints: rooms, weeks of shows, prices and terms of sale.

mod films;
mod programme;
mod rooms;
mod standing;
mod tariffs;
mod terms;

pub use films::{FilmChoice, FilmRequest};
pub use programme::{
    CancelShowRequest, CancellationView, DayPattern, DefectiveSeatsRequest, DefectiveSeatsView, InGap, OrganisedShow,
    PlannedShow, PlannedShows, ShowsRequest, WeekQuery,
};
pub use rooms::{
    FileForm, FileQuery, LayoutCategory, LayoutImport, LayoutView, PublishRequest, ScreenRequest, ScreenView,
};
pub use standing::{StandingRequest, StandingSeat, StandingSeats};
pub use tariffs::{TariffRequest, TariffView};
pub use terms::{Sales, TermsOfSale, TermsRequest};
