//! The JSON of the door: scans and what they came to, a device's list, what was settled later.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// What looks at tickets: a tablet, a telephone, a computer with a scanner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DoorDevice {
    /// Its own, made once.
    pub id: Uuid,
    /// Where it stands, for people: one line, up to 40 characters.
    pub name: String,
}

/// `POST …/scans`: look at a ticket, and let in whoever has it. The `Idempotency-Key` is the scan's id, a UUID that the
/// device makes: sent again it has the same answer, and lets nobody in again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScanRequest {
    /// What was read or typed: the text of a QR code, of one ticket or of a party, or a bare code.
    pub text: String,
    /// What read it.
    pub device: DoorDevice,
}

/// What a ticket came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Come in.
    Admitted,
    /// Somebody came in with it before: `used_at`, `used_where`, `used_by`.
    AlreadyUsed,
    /// It is for another show of this theatre: `show`.
    OtherShow,
    /// It is no ticket any more: `why`.
    NotValid,
    /// It is signed as ours are, or older than signatures, but there is no such ticket in this theatre.
    Unknown,
    /// We never signed it.
    Forged,
    /// Settled later: somebody was let in with it who should not have been: `why_not`.
    Conflict,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Admitted,
        Self::AlreadyUsed,
        Self::OtherShow,
        Self::NotValid,
        Self::Unknown,
        Self::Forged,
        Self::Conflict,
    ];

    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::AlreadyUsed => "already_used",
            Self::OtherShow => "other_show",
            Self::NotValid => "not_valid",
            Self::Unknown => "unknown",
            Self::Forged => "forged",
            Self::Conflict => "conflict",
        }
    }

    /// Reads what [`Outcome::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// Why a ticket is none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotValid {
    /// Its booking was cancelled.
    Cancelled,
    /// Its seat was given back, and the money with it.
    Refunded,
    /// Its seat was exchanged: another ticket took its place.
    Exchanged,
}

/// A show a ticket is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OtherShow {
    /// The show.
    pub id: Uuid,
    /// Its film.
    pub film: String,
    /// Its screen.
    pub screen: String,
    /// When it starts, on the clocks there: `2026-11-21T20:15:00`.
    pub starts_local: String,
}

/// What one ticket of a scan came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TicketAnswer {
    /// The last four characters of its code.
    pub ends: String,
    /// What it came to.
    pub outcome: Outcome,
    /// Its seat or area, for people; absent for what is no ticket of this theatre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
    /// When somebody came in with it, on the clocks there: `2026-11-21T20:15:07`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<String>,
    /// At which device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_where: Option<String>,
    /// By which scan: what undoes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<Uuid>,
    /// Why it is no ticket any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<NotValid>,
    /// The show it is for, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<OtherShow>,
}

/// What a scan came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ScanAnswer {
    /// The scan.
    pub scan: Uuid,
    /// Its tickets, in the order of the code.
    pub tickets: Vec<TicketAnswer>,
}

impl ScanAnswer {
    /// How many of them come in.
    #[must_use]
    pub fn admitted(&self) -> usize {
        self.tickets.iter().filter(|ticket| ticket.outcome == Outcome::Admitted).count()
    }
}

/// How many came of those who may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DoorCounts {
    /// Tickets that are good.
    pub sold: i64,
    /// Tickets with which somebody was let in.
    pub admitted: i64,
    /// Cases in which somebody was let in who should not have been.
    pub conflicts: i64,
}

/// How the door of a show stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DoorView {
    /// How many came.
    pub counts: DoorCounts,
    /// Who was let in and should not have been, the newest first, 50 at most.
    pub conflicts: Vec<ConflictView>,
}

/// Somebody was let in who should not have been, while devices had no network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ConflictView {
    /// Its number; they grow.
    pub number: i64,
    /// The last four characters of the ticket's code.
    pub ends: String,
    /// Its seat or area, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
    /// `already_used`: somebody came with it before, see `first_at`. Else why it lets nobody in.
    pub why: Outcome,
    /// When they were let in, on the clocks there.
    pub at: String,
    /// By which device.
    pub device: String,
    /// When somebody was let in with it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at: Option<String>,
    /// By which device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_device: Option<String>,
}

/// A show whose door is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DoorShow {
    /// The show.
    pub id: Uuid,
    /// Its film.
    pub film: String,
    /// Its screen.
    pub screen: String,
    /// When it starts, on the clocks there: `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// When it starts, milliseconds since 1970.
    pub starts_at_ms: i64,
    /// How many came.
    pub counts: DoorCounts,
}

/// What says that a list is ours, for whom, and how long it is good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ListSeal {
    /// The device it was made for.
    pub device: Uuid,
    /// When it was made, milliseconds since 1970.
    pub made_at_ms: i64,
    /// Until when a device may let people in by it.
    pub expires_at_ms: i64,
    /// SHA-256 of its digests, in hex.
    pub content: String,
    /// HMAC-SHA-256 over all of this, the theatre and the show, in hex.
    pub signature: String,
}

/// `GET …/list`: the tickets of a show for a device that may lose its network. Digests only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DoorList {
    /// What comes back with the scans that were made by it.
    pub seal: ListSeal,
    /// When it was made, on the clocks there: `2026-11-21T18:40:07`.
    pub made_at: String,
    /// Tickets that nobody used yet.
    pub open: Vec<String>,
    /// Tickets with which somebody was let in.
    pub used: Vec<UsedTicket>,
    /// Tickets that are none any more.
    pub not_valid: Vec<String>,
}

/// A ticket with which somebody was let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct UsedTicket {
    /// Its digest.
    pub digest: String,
    /// When, on the clocks there: `2026-11-21T20:15:07`.
    pub at: String,
    /// At which device.
    pub device: String,
}

/// `GET …/list`: for which device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct ListQuery {
    /// The device's id; it must be named.
    pub device: Option<Uuid>,
}

/// `POST …/settlements`: people who were let in without a network, by the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleRequest {
    /// What let them in.
    pub device: DoorDevice,
    /// Of the list.
    pub seal: ListSeal,
    /// What the device's clock says now, milliseconds since 1970.
    pub sent_at_ms: i64,
    /// The scans, 32 at most.
    pub scans: Vec<QueuedScan>,
}

/// Somebody who was let in without a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct QueuedScan {
    /// The scan's id, a UUID: the key it was or would have been sent with.
    pub scan: Uuid,
    /// Codes of the tickets with which somebody was let in.
    pub codes: Vec<String>,
    /// What the device's clock said then.
    pub at_ms: i64,
}

/// What was settled: an answer for each scan, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Settlement {
    /// What each scan came to: its tickets are `admitted` or a `conflict`.
    pub scans: Vec<ScanAnswer>,
}

/// `POST …/undo`: whoever was let in by a scan was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// The scan.
    pub scan: Uuid,
    /// The code of one ticket: of a party that came in by one scan, only this one was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// Why, in one line.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_back_and_spelt_as_json_spells_them() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
            assert_eq!(serde_json::to_string(&outcome).expect("JSON"), format!("\"{}\"", outcome.as_str()));
        }
        assert_eq!(Outcome::parse("maybe"), None);
    }

    #[test]
    fn the_largest_call_fits_a_body() {
        let code = "7".repeat(crate::door::CODE_LENGTH);
        let scan =
            QueuedScan { scan: Uuid::max(), codes: vec![code; crate::seats::MAX_SEATS_PER_HOLD], at_ms: i64::MIN };
        let seal = ListSeal {
            device: Uuid::max(),
            made_at_ms: i64::MIN,
            expires_at_ms: i64::MIN,
            content: "0".repeat(64),
            signature: "0".repeat(64),
        };
        let device = DoorDevice { id: Uuid::max(), name: "ब".repeat(crate::door::MAX_DEVICE_CHARS) };
        let scans = vec![scan; crate::door::MAX_SETTLED_SCANS];
        let body = serde_json::to_vec(&SettleRequest { device, seal, sent_at_ms: i64::MIN, scans }).expect("JSON");
        assert!(body.len() < 16 * 1024, "{} bytes", body.len());
    }
}
