//! JSON of accounts: sign-in, bookings of an account, staff roles and the audit log.
//!
//! Requests here may contain passwords. Passwords are neither printed ([`std::fmt::Debug`]) nor stored.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::booking::{BookingState, MoneyState};
use crate::money::Money;
use crate::roles::Role;

/// Minimum length of a password, characters.
pub const MIN_PASSWORD_CHARS: usize = 10;
/// Maximum length of a password, bytes. It bounds the work of hashing.
pub const MAX_PASSWORD_BYTES: usize = 256;

/// A password in a request. Its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Wraps a typed password.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the bytes to hash or compare.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// True if it has at least 10 characters and at most 256 bytes. Its content is not restricted.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.0.chars().count() >= MIN_PASSWORD_CHARS && self.0.len() <= MAX_PASSWORD_BYTES
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Password(…)")
    }
}

/// `POST /users/register`: creates an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// Name for tickets and mails.
    pub name: String,
    /// Address to sign in with.
    pub email: String,
    /// Password of 10 characters to 256 bytes.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
}

/// Next step after a registration. It is the same if the address already has an account; in that case a mail informs
/// the account's owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextStep {
    /// The address as sent.
    pub email: String,
    /// `LOG_IN` or `READ_MAIL`.
    pub next: String,
}

impl NextStep {
    /// The user should sign in.
    #[must_use]
    pub fn log_in(email: String) -> Self {
        Self { email, next: "LOG_IN".to_owned() }
    }

    /// The user should read the mail sent to that address.
    #[must_use]
    pub fn read_mail(email: String) -> Self {
        Self { email, next: "READ_MAIL".to_owned() }
    }
}

/// `POST /users/login`: signs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The account's address.
    pub email: String,
    /// Its password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
    /// True requests a bearer token for a program. False sets a cookie for a browser.
    #[serde(default)]
    pub token: bool,
}

/// `GET /users/me`, and the answer to a login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountView {
    /// The account.
    pub id: Uuid,
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
    /// True if the user has proved to receive mail at the address. The account then includes guest bookings made with
    /// it.
    pub email_proven: bool,
    /// Roles in theatres; empty for customers.
    pub grants: Vec<GrantView>,
}

/// Answer to a login: the account, and the token if requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoginView {
    /// The account.
    #[serde(flatten)]
    pub account: AccountView,
    /// Token to send as `Authorization: Bearer …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Validity of the token, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<i64>,
}

/// A role in a theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrantView {
    /// Slug of the theatre.
    pub theatre: String,
    /// The role.
    pub role: Role,
}

/// `POST /users/me/password`: changes the password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The current password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub current: Password,
    /// The new password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub new: Password,
}

/// `POST /users/password/forgotten`: requests a mail with a reset link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ForgottenRequest {
    /// The account's address.
    pub email: String,
}

/// `POST /users/password/reset`: sets a new password with a reset link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// Token from the link in the mail; valid once, for an hour.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token: LinkToken,
    /// The new password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
}

/// `POST /users/me/email/proof`: verifies an address with a mailed link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ProofRequest {
    /// Token from the link in the mail; valid once, for a day.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token: LinkToken,
}

/// Token in a mailed link: 256 random bits in hex. Its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct LinkToken(pub String);

impl std::fmt::Debug for LinkToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("LinkToken(…)")
    }
}

/// A booking in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BookingSummary {
    /// The booking.
    pub id: Uuid,
    /// Reference of the booking.
    pub reference: String,
    /// The show.
    pub show: Uuid,
    /// Title of the film or event.
    pub film: String,
    /// Theatre, screen and city, for display.
    pub place: String,
    /// Start in the theatre's time zone, for display in English.
    pub starts: String,
    /// The same in the theatre's time zone, `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// The same in milliseconds since 1970.
    pub starts_at_ms: i64,
    /// State of the booking.
    pub state: BookingState,
    /// State of its money.
    pub money: MoneyState,
    /// True if the gateway could not deliver the refund of everything left and returned it. A person then handles it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub came_back: bool,
    /// Names of its seats and places.
    pub what: Vec<String>,
    /// Total price.
    pub total: Money,
    /// Time of creation, milliseconds since 1970.
    pub created_at_ms: i64,
}

/// `GET /users/me/bookings`: selects the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct PageQuery {
    /// `next` of the previous page; default: the first page, with the newest bookings.
    pub after: Option<String>,
}

/// Bookings of an account, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BookingPage {
    /// The bookings, 20 at most.
    pub bookings: Vec<BookingSummary>,
    /// Cursor of the next page, for `?after=`; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A member of a theatre's staff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StaffView {
    /// Id of the account.
    pub account: Uuid,
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
    /// Roles, in the order of [`Role`].
    pub roles: Vec<Role>,
}

/// `POST /theatres/{theatre}/staff`: grants or revokes a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// Address of the account.
    pub email: String,
    /// The role.
    pub role: Role,
    /// True grants it, false revokes it.
    pub granted: bool,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// Names of actions in a theatre, as the audit log contains them.
pub const THEATRE_ACTIONS: [&str; 56] = [
    "role_given",
    "role_taken",
    "pin_set",
    "api_key_made",
    "api_key_revoked",
    "webhook_replayed",
    "webhook_made",
    "webhook_secret_changed",
    "webhook_switched_on",
    "webhook_switched_off",
    "webhook_removed",
    "unusual_dismissed",
    "theatre_created",
    "theatre_changed",
    "tariff_set",
    "shows_planned",
    "show_terms_changed",
    "show_moved",
    "draft_moved",
    "show_called_off",
    "show_rehearsed",
    "rehearsal_stopped",
    "rehearsal_deleted",
    "defective_seats",
    "screen_created",
    "layout_imported",
    "layout_published",
    "film_added",
    "seats_kept",
    "seats_put_back",
    "house_seats_taken",
    "seats_kept_from_start",
    "standing_seats_kept",
    "standing_seats_put_back",
    "till_opened",
    "till_drop",
    "till_cashed_up",
    "till_cashed_up_for",
    "day_closed",
    "bookings_looked_for",
    "sold",
    "given_away",
    "exchanged",
    "refunded",
    "sale_undone",
    "paid_out",
    "parked_retried",
    "parked_settled",
    "tickets_printed",
    "held_for_caller",
    "caller_let_go",
    "door_admission_undone",
    "door_conflict",
    "waiting_room_on",
    "waiting_room_off",
    "waiting_room_changed",
];

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditView {
    /// Sequence number, increasing.
    pub number: i64,
    /// Time, RFC 3339.
    pub at: String,
    /// Account that acted; absent for an operator at the server's command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Uuid>,
    /// Current name of that account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_name: Option<String>,
    /// The action: one of [`THEATRE_ACTIONS`].
    pub act: String,
    /// Subject of the action: a kind and an id.
    pub subject: String,
    /// The subject with current names in place of ids of accounts, shows and tills; absent if it has no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_name: Option<String>,
    /// The reason.
    pub reason: String,
    /// The reason with names in place of ids, for example the manager whose PIN was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_name: Option<String>,
}

/// `GET /theatres/{theatre}/audit`: selects the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct AuditQuery {
    /// Returns only lines with a smaller number.
    pub before: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_length_is_checked_and_debug_output_hides_it() {
        let password = |text: &str| Password::new(text.to_owned());
        assert!(password("correct horse").is_acceptable());
        assert!(password("пароль долгий").is_acceptable(), "characters count, not bytes");
        assert!(!password("короткий").is_acceptable(), "15 bytes, but 8 characters");
        assert!(password(&"x".repeat(MAX_PASSWORD_BYTES)).is_acceptable());
        assert!(!password(&"x".repeat(MAX_PASSWORD_BYTES + 1)).is_acceptable());
        let request = LoginRequest { email: "a@b.cd".to_owned(), password: password("secret words"), token: false };
        assert!(!format!("{request:?}").contains("secret"));
    }
}
