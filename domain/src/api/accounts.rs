//! The JSON of accounts: who one is, what one bought, who works where.
//!
//! Requests here may hold passwords: none of them is printed ([`std::fmt::Debug`]) or kept.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::booking::{BookingState, MoneyState};
use crate::money::Money;
use crate::roles::Role;

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// Shortest password, characters.
pub const MIN_PASSWORD_CHARS: usize = 10;
/// Longest password, bytes: hashing a longer one would be work for nothing.
pub const MAX_PASSWORD_BYTES: usize = 256;

/// A password on its way. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// What was typed.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// To be hashed or compared, and nothing else.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether somebody may choose it: 10 characters at least, 256 bytes at most. What is in it is theirs.
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

/// `POST /users/register`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// Name for tickets and mails.
    pub name: String,
    /// Address one signs in with.
    pub email: String,
    /// 10 characters to 256 bytes.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
}

/// What comes next: the same whether the address has an account. Its owner is told by mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NextStep {
    /// The address, as it was sent.
    pub email: String,
    /// `LOG_IN` or `READ_MAIL`.
    pub next: String,
}

impl NextStep {
    /// Sign in.
    #[must_use]
    pub fn log_in(email: String) -> Self {
        Self { email, next: "LOG_IN".to_owned() }
    }

    /// Look into the mailbox of that address.
    #[must_use]
    pub fn read_mail(email: String) -> Self {
        Self { email, next: "READ_MAIL".to_owned() }
    }
}

/// `POST /users/login`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The account's address.
    pub email: String,
    /// Its password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
    /// A token for programs instead of a cookie for browsers.
    #[serde(default)]
    pub token: bool,
}

/// `GET /users/me`, and the answer to a login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct AccountView {
    /// The account.
    pub id: Uuid,
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
    /// Whether mail there was seen to reach its owner: then what guests bought with this address is theirs.
    pub email_proven: bool,
    /// Where they work, as what; empty for customers.
    pub grants: Vec<GrantView>,
}

/// The answer to a login: who one is, and the token if one was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct LoginView {
    /// Who one is.
    #[serde(flatten)]
    pub account: AccountView,
    /// To be sent as `Authorization: Bearer …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// For how long it is good, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<i64>,
}

/// A role in a theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct GrantView {
    /// Slug of the theatre.
    pub theatre: String,
    /// The role.
    pub role: Role,
}

/// `POST /users/me/password`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The password as it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub current: Password,
    /// As it is to be.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub new: Password,
}

/// `POST /users/password/forgotten`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ForgottenRequest {
    /// The account's address.
    pub email: String,
}

/// `POST /users/password/reset`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// From the link in the mail; good once, for an hour.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token: LinkToken,
    /// The new password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
}

/// `POST /users/me/email/proof`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ProofRequest {
    /// From the link in the mail; good once, for a day.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token: LinkToken,
}

/// What a link in a mail carries: 256 random bits in hex. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(transparent)]
pub struct LinkToken(pub String);

impl std::fmt::Debug for LinkToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("LinkToken(…)")
    }
}

/// A booking in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BookingSummary {
    /// The booking.
    pub id: Uuid,
    /// Its name for people.
    pub reference: String,
    /// The show.
    pub show: Uuid,
    /// The film or concert.
    pub film: String,
    /// Theatre, screen and city, for people.
    pub place: String,
    /// When it starts, for people there, in English.
    pub starts: String,
    /// The same on the clocks there, `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// The same in milliseconds since 1970.
    pub starts_at_ms: i64,
    /// How it stands.
    pub state: BookingState,
    /// How its money stands.
    pub money: MoneyState,
    /// Whether the refund of all that was left came back: the gateway could not send it, and a person looks at it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub came_back: bool,
    /// Names of its seats and places.
    pub what: Vec<String>,
    /// What it costs.
    pub total: Money,
    /// When it was made, milliseconds since 1970.
    pub created_at_ms: i64,
}

/// `GET /users/me/bookings`: which page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct PageQuery {
    /// `next` of the page before; the newest when absent.
    pub after: Option<String>,
}

/// Bookings of an account, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BookingPage {
    /// The bookings, 20 at most.
    pub bookings: Vec<BookingSummary>,
    /// Ask on with `?after=`; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Somebody who works in a theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StaffView {
    /// Their account.
    pub account: Uuid,
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
    /// As what, in the order of the roles.
    pub roles: Vec<Role>,
}

/// `POST /theatres/{theatre}/staff`: give somebody a role, or take it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// Address of their account.
    pub email: String,
    /// The role.
    pub role: Role,
    /// `true` to give it, `false` to take it.
    pub granted: bool,
    /// Why, in one line.
    pub reason: String,
}

/// What is done in a theatre, as the audit list names it.
pub const THEATRE_ACTS: [&str; 52] = [
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
    "show_called_off",
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

/// A line of the audit list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct AuditView {
    /// Its number; they grow.
    pub number: i64,
    /// When, RFC 3339.
    pub at: String,
    /// Who: the account; absent for somebody at the server's command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Uuid>,
    /// Their name today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_name: Option<String>,
    /// What they did: one of [`THEATRE_ACTS`].
    pub act: String,
    /// To what: a kind and an id.
    pub subject: String,
    /// The same with names of today for ids of accounts, shows and tills; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_name: Option<String>,
    /// Why.
    pub reason: String,
    /// The same with names, as of the subject: by whose PIN, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_name: Option<String>,
}

/// `GET /theatres/{theatre}/audit`: which page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct AuditQuery {
    /// Only lines with a smaller number.
    pub before: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_long_enough_not_too_long_and_never_printed() {
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
