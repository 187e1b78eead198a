//! JSON types of requests and answers under `/api/v1`. Server and client share them: one module per capability of the
//! server, and types that several capabilities use here.
//!
//! Instants are RFC 3339 strings for people and `*_ms` numbers for programs that count down.

pub mod accounts;
pub mod bookings;
pub mod box_office;
pub mod cancelling;
pub mod catalogue;
pub mod door;
pub mod email_codes;
pub mod fairness;
pub mod holds;
pub mod moving;
pub mod organiser;
pub mod parked;
mod plan;
mod problem;
pub mod reports;
mod seat_kind;
pub mod systems;
pub mod theatres;
pub mod tills;
pub mod waiting_list;
pub mod waiting_room;

pub use bookings::{
    BookingEventView, BookingRequest, BookingState, BookingView, CheckoutPayment, ConfirmRequest, KeptHold, MoneyState,
    Person, Receipt,
};
pub use cancelling::{CancelRequest, LatePaymentHandling, RefundView, StepView};
pub use holds::{AreaQuantity, BestView, HoldChange, HoldRequest, HoldView, SuggestionView};
pub use plan::{
    AreaView, CategoryView, OVERVIEW_ABOVE_SEATS, PlaceLine, PlanView, RowView, SEAT_PITCH, SeatLine, SectionView,
    ShapeView,
};
pub use problem::{AreaProblem, ProblemView, PuzzleView, SeatProblem};
pub use seat_kind::{KindTexts, SeatKind, SeatRules};

/// Header of every API answer with the lock store's clock at the time of sending, milliseconds since 1970. A client
/// counts down from `expires_at_ms` minus this value, because its own clock may be wrong.
pub const SERVER_TIME_HEADER: &str = "server-time";
/// Query string of a booking page to which the gateway redirects a visitor who submitted a card. It is absent if the
/// visitor cancelled on the gateway's page.
pub const SUBMITTED_QUERY: &str = "submitted=1";
