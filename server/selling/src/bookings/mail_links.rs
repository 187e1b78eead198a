//! Links in mails that open a booking on any device, answer its offer of other seats, or cancel it. Each purpose has its
//! own signing key: a link that opens a booking never cancels it.

use std::sync::OnceLock;

use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use platform::signed_token::{Keys, dated_key, read_dated_key};

/// Lifetime of a link that opens a booking, milliseconds: buyers look for refunds weeks later.
const OPENS_FOR_MS: i64 = 90 * 24 * 60 * MINUTE_MS;
/// Lifetime of a link that cancels a booking, milliseconds.
const CANCELS_FOR_MS: i64 = 30 * MINUTE_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Shows the booking.
    Open,
    /// Shows the booking, and answers its open offer of other seats.
    Answer,
    /// Cancels the booking, after a confirmation.
    Cancel,
}

impl Purpose {
    /// Returns the label that the signing key is derived for.
    const fn derived_for(self) -> &'static [u8] {
        match self {
            Self::Open => b"rowlock page of a booking 1\n",
            Self::Answer => b"rowlock answer to a seat offer 1\n",
            Self::Cancel => b"rowlock cancelling of a booking 1\n",
        }
    }

    const fn life_ms(self) -> i64 {
        match self {
            Self::Open | Self::Answer => OPENS_FOR_MS,
            Self::Cancel => CANCELS_FOR_MS,
        }
    }

    /// Returns the keys of this process, set once.
    fn keys(self) -> &'static OnceLock<Keys> {
        static OPEN: OnceLock<Keys> = OnceLock::new();
        static ANSWER: OnceLock<Keys> = OnceLock::new();
        static CANCEL: OnceLock<Keys> = OnceLock::new();
        match self {
            Self::Open => &OPEN,
            Self::Answer => &ANSWER,
            Self::Cancel => &CANCEL,
        }
    }
}

/// Sets the secrets that sign keys: the first signs, all verify. A second call changes nothing.
pub fn sign_links_with(secrets: &[String]) {
    for purpose in [Purpose::Open, Purpose::Answer, Purpose::Cancel] {
        let _ = purpose.keys().set(Keys::derived(secrets, purpose.derived_for()));
    }
}

/// Returns the link to a booking's page for a mail written `now`.
#[must_use]
pub fn page_url(public_url: &str, booking: Uuid, now: Timestamp) -> String {
    format!("{public_url}/bookings/by-mail/{}", key(Purpose::Open, booking, now))
}

/// Returns the link to a booking's page that also answers its offer of other seats, for a mail written `now`.
#[must_use]
pub fn answer_url(public_url: &str, booking: Uuid, now: Timestamp) -> String {
    format!("{public_url}/bookings/by-mail/{}", key(Purpose::Answer, booking, now))
}

/// Returns the link that cancels a booking, for a mail written `now`.
pub(super) fn cancel_url(public_url: &str, booking: Uuid, now: Timestamp) -> String {
    format!("{public_url}/bookings/cancel/{}", key(Purpose::Cancel, booking, now))
}

/// Creates a key; empty before the secrets are set.
pub(super) fn key(purpose: Purpose, booking: Uuid, now: Timestamp) -> String {
    let keys = purpose.keys().get();
    keys.map(|keys| dated_key(keys, booking, now.plus_ms(purpose.life_ms()))).unwrap_or_default()
}

/// Returns the booking of a key; `None` for a key that is forged, of another purpose, or expired.
pub(super) fn booking_of(purpose: Purpose, key: &str, now: Timestamp) -> Option<Uuid> {
    read_dated_key(purpose.keys().get()?, key, now)
}
