//! Looks up tickets scanned at the door of a show.

use std::collections::HashMap;

use domain::api::door::{NotValid, OtherShow, Outcome, TicketAnswer};
use domain::door::Code;
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, TicketRow};
use crate::BackofficeState;
use ::tickets::{Signed, check_signature};
use catalogue::Show;
use http::ApiResult;

/// Number of last characters of a code in an answer, for people to compare with the ticket in their hand.
const SUFFIX_CHARS: usize = 4;

/// The validity of a ticket, apart from earlier admissions with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TicketValidity {
    /// Valid for this show.
    Good,
    /// Valid for this other show.
    OtherShow(Uuid),
    /// No longer valid.
    NotValid(NotValid),
    /// This theatre has no such ticket.
    Unknown,
    /// The signature is invalid.
    Forged,
}

impl TicketValidity {
    /// The outcome of a scan that is not admitted.
    pub(super) const fn outcome(&self) -> Outcome {
        match self {
            Self::Good => Outcome::AlreadyUsed,
            Self::OtherShow(_) => Outcome::OtherShow,
            Self::NotValid(_) => Outcome::NotValid,
            Self::Unknown => Outcome::Unknown,
            Self::Forged => Outcome::Forged,
        }
    }
}

/// The tickets of a theatre, by code.
pub(super) struct TicketLookup {
    rows: HashMap<String, TicketRow>,
}

impl TicketLookup {
    /// Loads the tickets of these codes, and locks their bookings against change until the transaction ends.
    pub(super) async fn open(tx: &mut PgConnection, theatre: &str, codes: &[String]) -> sqlx::Result<Self> {
        let rows = sql::of_codes(tx, theatre, codes).await?;
        Ok(Self { rows: rows.into_iter().map(|row| (row.code.clone(), row)).collect() })
    }

    pub(super) fn finding(&self, code: &Code, show: Uuid) -> TicketValidity {
        judge_ticket(self.rows.get(code.as_str()), || check_signature(code), show)
    }

    /// Returns the seat or area of a ticket.
    pub(super) fn seat(&self, code: &Code) -> Option<&str> {
        self.rows.get(code.as_str())?.seat.as_deref()
    }
}

fn judge_ticket(row: Option<&TicketRow>, signed: impl FnOnce() -> Signed, show: Uuid) -> TicketValidity {
    let Some(row) = row else {
        return match signed() {
            Signed::ByUs | Signed::Never => TicketValidity::Unknown,
            Signed::Forged => TicketValidity::Forged,
        };
    };
    if !row.is_confirmed {
        return TicketValidity::NotValid(NotValid::Cancelled);
    }
    if row.is_revoked {
        return TicketValidity::NotValid(if row.is_returned { NotValid::Refunded } else { NotValid::Exchanged });
    }
    if row.show_id == show { TicketValidity::Good } else { TicketValidity::OtherShow(row.show_id) }
}

/// Returns the last characters of a code.
pub(super) fn code_suffix(code: &str) -> String {
    code.get(code.len().saturating_sub(SUFFIX_CHARS)..).unwrap_or_default().to_owned()
}

/// Builds an answer with the outcome and nothing else.
pub(super) fn bare_answer(code: &Code, outcome: Outcome, seat: Option<&str>) -> TicketAnswer {
    TicketAnswer {
        ends: code_suffix(code.as_str()),
        outcome,
        seat: seat.map(str::to_owned),
        used_at: None,
        used_where: None,
        used_by: None,
        why: None,
        show: None,
    }
}

/// Adds the details that help the holder of such a ticket.
pub(super) async fn explain(
    state: &BackofficeState,
    answer: &mut TicketAnswer,
    finding: &TicketValidity,
) -> ApiResult<()> {
    match finding {
        TicketValidity::NotValid(why) => answer.why = Some(*why),
        TicketValidity::OtherShow(show) => answer.show = state.catalogue.show(*show).await?.map(|show| other(&show)),
        TicketValidity::Good | TicketValidity::Unknown | TicketValidity::Forged => {}
    }
    Ok(())
}

fn other(show: &Show) -> OtherShow {
    OtherShow {
        id: show.id,
        film: show.film.clone(),
        screen: show.screen.clone(),
        starts_local: show.local_iso(show.starts_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_ticket_overrides_its_signature_and_an_unknown_one_is_judged_by_it() {
        let show = Uuid::from_u128(1);
        let row = TicketRow {
            code: String::new(),
            show_id: show,
            seat: None,
            is_confirmed: true,
            is_revoked: false,
            is_returned: false,
        };
        let revoked = TicketRow { is_revoked: true, ..row.clone() };
        for (row, expected) in [
            (row.clone(), TicketValidity::Good),
            (TicketRow { show_id: Uuid::nil(), ..row.clone() }, TicketValidity::OtherShow(Uuid::nil())),
            (TicketRow { is_confirmed: false, ..revoked.clone() }, TicketValidity::NotValid(NotValid::Cancelled)),
            (TicketRow { is_returned: true, ..revoked.clone() }, TicketValidity::NotValid(NotValid::Refunded)),
            (revoked, TicketValidity::NotValid(NotValid::Exchanged)),
        ] {
            // The signature does not matter for a stored ticket: its secret may have been replaced.
            for signed in [Signed::ByUs, Signed::Never, Signed::Forged] {
                assert_eq!(judge_ticket(Some(&row), || signed, show), expected, "{row:?}");
            }
        }
        assert_eq!(judge_ticket(None, || Signed::ByUs, show), TicketValidity::Unknown);
        assert_eq!(judge_ticket(None, || Signed::Never, show), TicketValidity::Unknown);
        assert_eq!(judge_ticket(None, || Signed::Forged, show), TicketValidity::Forged);
    }

    #[test]
    fn an_answer_contains_only_the_last_characters_of_a_code() {
        assert_eq!(code_suffix("0123456789ABCDEFGHJKMNPQRS"), "PQRS");
        assert_eq!(code_suffix("AB"), "AB");
    }
}
