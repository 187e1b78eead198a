//! Problem codes, each with its status, its title and whether a retry may help.

use axum::http::StatusCode;
use strum::VariantArray;

/// Stable names of what can go wrong, in the order of docs/api.md; a test keeps the two equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray)]
pub enum Code {
    /// The body, a parameter or a header could not be read.
    Malformed,
    /// The body's type is not `application/json`.
    NotJson,
    /// The body is larger than allowed.
    TooLarge,
    /// A mutating call came without `Idempotency-Key`.
    KeyMissing,
    /// The key is not 1 to 255 visible ASCII characters.
    KeyMalformed,
    /// The key was used for another request.
    KeyReused,
    /// The first request with this key is still running.
    StillRunning,
    /// No such thing, or not yours.
    NotFound,
    /// The show is another region's.
    OtherRegion,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// A seat index the room does not have.
    UnknownSeat,
    /// An area the show does not have.
    UnknownArea,
    /// A seat was named twice.
    SeatTwice,
    /// No seat, or more than ten.
    SeatCount,
    /// A name or e-mail address that cannot be one.
    PersonInvalid,
    /// Another visitor holds a requested seat.
    SeatsLocked,
    /// A requested seat is sold or not for sale.
    SeatsTaken,
    /// You have a hold for this show already.
    OneHoldPerShow,
    /// More seats than one person may have.
    PersonLimit,
    /// Such seats go to the waiting list first.
    WaitingListFirst,
    /// Such seats are free; the waiting list is not needed.
    SeatsFree,
    /// You are in this waiting list already.
    AlreadyWaiting,
    /// Too many wait, or you wait in too many places.
    WaitingListFull,
    /// The show is entered through its waiting room, and your turn is to come.
    WaitingRoom,
    /// A puzzle is to be solved before seats are taken.
    PuzzleWanted,
    /// The solution fits no current puzzle of this visitor for this show.
    PuzzleWrong,
    /// The solution was used for another request.
    PuzzleSpent,
    /// The hold expired or was released.
    HoldExpired,
    /// A payment is in progress: the hold cannot be changed.
    HoldPaying,
    /// The hold lasts as long as it can already.
    HoldCapped,
    /// The hold could last longer, but others of the same visitor ran out lately.
    HoldNotExtended,
    /// The show starts too soon, or has started.
    SalesClosed,
    /// Not possible from the booking's state.
    WrongState,
    /// The price differs from the one the buyer saw.
    PriceChanged,
    /// The show asks guests to prove their address before they check out.
    EmailCodeWanted,
    /// Another code than the one that was mailed.
    EmailCodeWrong,
    /// No e-mail code can be entered: none was requested, it expired, or it had too many attempts.
    EmailCodeOver,
    /// More seats than one card may pay for.
    InstrumentLimit,
    /// The show is too near for its buyers to cancel.
    TooLateToCancel,
    /// Too many cards were declined lately.
    TooManyDeclines,
    /// The gateway cannot be reached.
    GatewayUnavailable,
    /// A webhook without a usable signature.
    WebhookUnsigned,
    /// A webhook signed too long ago.
    WebhookStale,
    /// A webhook signed with another secret.
    WebhookSignatureMismatch,
    /// A webhook about a payment we do not know.
    UnknownPayment,
    /// A browser on another site sent this.
    ForeignOrigin,
    /// Only for people who are signed in.
    NotSignedIn,
    /// The token is invalid, expired, or of a closed session.
    TokenInvalid,
    /// Address and password do not go together.
    LoginFailed,
    /// A password that is too short or too long.
    PasswordUnusable,
    /// A link of a mail that was used, is too old, or never was.
    LinkInvalid,
    /// Signed in, and in this theatre, but as something else.
    NotAllowed,
    /// The change would leave a theatre without a manager.
    LastManager,
    /// Roles need a verified e-mail address.
    EmailUnproven,
    /// The show is not today: its tickets cannot be scanned.
    DoorClosed,
    /// The device's list has no valid seal.
    ListInvalid,
    /// This scan admitted no one.
    NotAdmitted,
    /// Too many tries by one person or from one address.
    TooManyAttempts,
    /// A room's file with mistakes in it.
    LayoutRefused,
    /// A show in another's way on its screen.
    ShowsOverlap,
    /// A time that the clocks of the theatre jump over.
    NoSuchTime,
    /// A price that cannot be one, or none where there must be one.
    PriceInvalid,
    /// No till of the caller's is open here.
    TillClosed,
    /// A till is open that must not be.
    TillOpen,
    /// Less cash in the till than is to go out of it.
    TillShort,
    /// The counted sum differs from the expected one, and no reason was given.
    TillDiffers,
    /// The sale is not the caller's of a moment ago.
    UndoTooLate,
    /// Manager and PIN do not go together.
    PinWrong,
    /// A rehearsal of this or another theatre is running.
    RehearsalRunning,
    /// A show goes on sale too soon for a rehearsal, or has just done so.
    OnSaleNear,
    /// The lock store cannot be reached.
    LockStoreUnavailable,
    /// The database cannot be reached or is overloaded.
    DatabaseUnavailable,
    /// Too much at once.
    Overloaded,
    /// A defect of the server.
    Internal,
}

impl Code {
    /// Status, stable name, title.
    #[must_use]
    pub const fn describe(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::Malformed => (S::BAD_REQUEST, "malformed", "The request could not be read"),
            Self::NotJson => (S::UNSUPPORTED_MEDIA_TYPE, "not_json", "The body must be JSON"),
            Self::TooLarge => (S::PAYLOAD_TOO_LARGE, "too_large", "The body is too large"),
            Self::KeyMissing => (S::BAD_REQUEST, "key_missing", "Idempotency-Key is missing"),
            Self::KeyMalformed => (S::BAD_REQUEST, "key_malformed", "Idempotency-Key cannot be used"),
            Self::KeyReused => (S::UNPROCESSABLE_ENTITY, "key_reused", "This key was used for another request"),
            Self::StillRunning => (S::CONFLICT, "still_running", "An earlier request is still running"),
            Self::NotFound => (S::NOT_FOUND, "not_found", "There is nothing here"),
            Self::OtherRegion => (S::MISDIRECTED_REQUEST, "other_region", "This show is sold in another region"),
            Self::MethodNotAllowed => (S::METHOD_NOT_ALLOWED, "method_not_allowed", "Not this way"),
            Self::UnknownSeat => (S::BAD_REQUEST, "unknown_seat", "The room has no such seat"),
            Self::UnknownArea => (S::BAD_REQUEST, "unknown_area", "The show has no such area"),
            Self::SeatTwice => (S::BAD_REQUEST, "seat_twice", "A seat was named twice"),
            Self::SeatCount => (S::BAD_REQUEST, "seat_count", "A hold has 1 to 10 seats"),
            Self::PersonInvalid => (S::BAD_REQUEST, "person_invalid", "A name or e-mail address is not usable"),
            Self::SeatsLocked => (S::LOCKED, "seats_locked", "Another visitor is holding a seat you asked for"),
            Self::SeatsTaken => (S::CONFLICT, "seats_taken", "A seat you asked for is not for sale"),
            Self::OneHoldPerShow => (S::CONFLICT, "one_hold_per_show", "You are holding seats for this show already"),
            Self::PersonLimit => (S::TOO_MANY_REQUESTS, "person_limit", "That is more seats than one person may have"),
            Self::WaitingListFirst => (S::CONFLICT, "waiting_list_first", "Others are waiting for these seats"),
            Self::SeatsFree => (S::CONFLICT, "seats_free", "There is no need to wait"),
            Self::AlreadyWaiting => (S::CONFLICT, "already_waiting", "You are in this waiting list already"),
            Self::WaitingListFull => (S::TOO_MANY_REQUESTS, "waiting_list_full", "The waiting list is full"),
            Self::WaitingRoom => (S::TOO_MANY_REQUESTS, "waiting_room", "This show has a waiting room"),
            Self::PuzzleWanted => (S::PRECONDITION_REQUIRED, "puzzle_wanted", "A puzzle is to be solved first"),
            Self::PuzzleWrong => (S::BAD_REQUEST, "puzzle_wrong", "This does not solve a puzzle of yours"),
            Self::PuzzleSpent => (S::CONFLICT, "puzzle_spent", "This solution was used before"),
            Self::HoldExpired => (S::GONE, "hold_expired", "The hold is over"),
            Self::HoldPaying => (S::CONFLICT, "hold_paying", "A payment is in progress"),
            Self::HoldCapped => (S::CONFLICT, "hold_capped", "The hold cannot last any longer"),
            Self::HoldNotExtended => {
                (S::CONFLICT, "hold_not_extended", "Holds of yours ran out lately: this one lasts no longer")
            }
            Self::SalesClosed => (S::CONFLICT, "sales_closed", "This show can no longer be booked"),
            Self::WrongState => (S::CONFLICT, "wrong_state", "The booking has moved on"),
            Self::PriceChanged => (S::CONFLICT, "price_changed", "The price has changed"),
            Self::EmailCodeWanted => {
                (S::FORBIDDEN, "email_code_wanted", "The e-mail address is to be proven by a code")
            }
            Self::EmailCodeWrong => {
                (S::UNPROCESSABLE_ENTITY, "email_code_wrong", "This is not the code that was mailed")
            }
            Self::EmailCodeOver => (S::GONE, "email_code_over", "No code can be entered any more"),
            Self::InstrumentLimit => {
                (S::TOO_MANY_REQUESTS, "instrument_limit", "That is more seats than one card may pay for")
            }
            Self::TooLateToCancel => (S::CONFLICT, "too_late_to_cancel", "It is too late to cancel"),
            Self::TooManyDeclines => (S::TOO_MANY_REQUESTS, "too_many_declines", "Too many payments were declined"),
            Self::GatewayUnavailable => {
                (S::SERVICE_UNAVAILABLE, "gateway_unavailable", "Payments cannot be taken right now")
            }
            Self::WebhookUnsigned => (S::UNAUTHORIZED, "webhook_unsigned", "The webhook is not signed"),
            Self::WebhookStale => (S::UNAUTHORIZED, "webhook_stale", "The webhook was signed at another time"),
            Self::WebhookSignatureMismatch => {
                (S::UNAUTHORIZED, "webhook_signature_mismatch", "The webhook's signature does not match")
            }
            Self::UnknownPayment => (S::NOT_FOUND, "unknown_payment", "We know no such payment"),
            Self::ForeignOrigin => (S::FORBIDDEN, "foreign_origin", "The request came from another site"),
            Self::NotSignedIn => (S::UNAUTHORIZED, "not_signed_in", "Please sign in first"),
            Self::TokenInvalid => (S::UNAUTHORIZED, "token_invalid", "The token is not valid, or not any more"),
            Self::LoginFailed => (S::UNAUTHORIZED, "login_failed", "Address and password do not go together"),
            Self::PasswordUnusable => (S::BAD_REQUEST, "password_unusable", "The password is too short or too long"),
            Self::LinkInvalid => (S::GONE, "link_invalid", "The link does not work any more"),
            Self::NotAllowed => (S::FORBIDDEN, "not_allowed", "Your role does not allow this"),
            Self::LastManager => (S::CONFLICT, "last_manager", "The theatre would have no manager"),
            Self::EmailUnproven => (S::CONFLICT, "email_unproven", "The address was not confirmed yet"),
            Self::DoorClosed => (S::CONFLICT, "door_closed", "The door of this show is not open"),
            Self::ListInvalid => (S::BAD_REQUEST, "list_invalid", "The list is none of ours"),
            Self::NotAdmitted => (S::CONFLICT, "not_admitted", "This scan has admitted no one"),
            Self::TooManyAttempts => (S::TOO_MANY_REQUESTS, "too_many_attempts", "Too many tries in a short time"),
            Self::LayoutRefused => (S::BAD_REQUEST, "layout_refused", "The room cannot be sold like this"),
            Self::ShowsOverlap => (S::CONFLICT, "shows_overlap", "Two shows would be on one screen at a time"),
            Self::NoSuchTime => (S::BAD_REQUEST, "no_such_time", "The clocks jump over that time"),
            Self::PriceInvalid => (S::BAD_REQUEST, "price_invalid", "A price is missing, or cannot be one"),
            Self::TillClosed => (S::CONFLICT, "till_closed", "No till is open"),
            Self::TillOpen => (S::CONFLICT, "till_open", "A till is still open"),
            Self::TillShort => (S::CONFLICT, "till_short", "There is too little cash in the till"),
            Self::TillDiffers => (S::CONFLICT, "till_differs", "The till does not add up"),
            Self::UndoTooLate => (S::CONFLICT, "undo_too_late", "This sale cannot be undone any more"),
            Self::PinWrong => (S::UNPROCESSABLE_ENTITY, "pin_wrong", "Manager and PIN do not go together"),
            Self::RehearsalRunning => (S::CONFLICT, "rehearsal_running", "A rehearsal is running"),
            Self::OnSaleNear => (S::CONFLICT, "on_sale_near", "An on-sale is too near"),
            Self::LockStoreUnavailable => {
                (S::SERVICE_UNAVAILABLE, "lock_store_unavailable", "Seats cannot be held right now")
            }
            Self::DatabaseUnavailable => {
                (S::SERVICE_UNAVAILABLE, "database_unavailable", "Sales are paused for a moment")
            }
            Self::Overloaded => (S::SERVICE_UNAVAILABLE, "overloaded", "Too much at once"),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "Something went wrong on our side"),
        }
    }

    /// Returns true if a retry of the same request may succeed soon, 503 aside. A limit of seats stays reached, and a
    /// waiting list stays full for long.
    pub(super) const fn is_worth_repeating(self) -> bool {
        matches!(self, Self::StillRunning | Self::WaitingRoom | Self::TooManyDeclines | Self::TooManyAttempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_codes_are_the_codes() {
        let rows = Code::VARIANTS.iter().map(|code| {
            let (status, name, title) = code.describe();
            format!("| {} | `{name}` | {title} |", status.as_u16())
        });
        let rows: Vec<_> = rows.collect();
        let documented: Vec<&str> = include_str!("../../../../docs/api.md")
            .lines()
            .skip_while(|line| *line != "| status | code | |")
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .collect();
        assert_eq!(documented, rows);
    }
}
