//! The outcome of a scan: a word readable from two steps away, and lines below it.

use domain::api::door::{ConflictView, NotValid, Outcome, ScanAnswer, TicketAnswer};
use language::{Arg, Moment, current, listed as in_a_list, say};
use strum::IntoStaticStr;
use uuid::Uuid;

use super::offline::TicketStatus;

/// The tone: a colour, and a shape for those who cannot see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Tone {
    /// Admitted: a tick in a circle.
    Good,
    /// Partly admitted: a bar in a diamond.
    Partly,
    /// Refused: a cross in an octagon.
    Bad,
    /// Unknown: a question mark in a square.
    Unsure,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScanOutcome {
    /// Increases with every scan.
    pub number: u32,
    pub scan: Uuid,
    pub tone: Tone,
    pub word: String,
    pub lines: Vec<String>,
    /// The tickets, by the ends of their codes.
    pub tickets: String,
    /// Admissions that can be undone: its own, and earlier ones of the same tickets.
    pub undos: Vec<UndoableAdmission>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoableAdmission {
    pub scan: Uuid,
    /// The code of one of its tickets; `None` for all.
    pub ticket: Option<String>,
    /// The tickets, by the ends of their codes.
    pub ends: String,
    pub is_done: bool,
}

impl UndoableAdmission {
    /// Returns true if undoing `other` undoes this one.
    pub fn is_undone_by(&self, other: &Self) -> bool {
        self.scan == other.scan && (other.ticket.is_none() || self.ends == other.ends)
    }
}

impl ScanOutcome {
    /// An outcome without known tickets.
    pub fn new(tone: Tone, word: String, lines: Vec<String>) -> Self {
        Self { number: 0, scan: Uuid::nil(), tone, word, lines, tickets: String::new(), undos: Vec::new() }
    }
}

pub fn of_answer(answer: &ScanAnswer) -> ScanOutcome {
    let tickets = &answer.tickets;
    let (count, admitted) = (tickets.len(), answer.admitted());
    let refused = tickets.iter().find(|ticket| ticket.outcome != Outcome::Admitted);
    let (tone, word) = match refused {
        None => (Tone::Good, come_in(count)),
        Some(_) if admitted > 0 => (Tone::Partly, say!("door.partly", admitted = admitted, count = count)),
        Some(first) => (Tone::Bad, word_of(first.outcome)),
    };
    let mut lines = Vec::new();
    let seats: Vec<&str> = tickets
        .iter()
        .filter(|ticket| ticket.outcome == Outcome::Admitted)
        .filter_map(|ticket| ticket.seat.as_deref())
        .collect();
    if !seats.is_empty() {
        lines.push(in_a_list(&seats));
    }
    lines.extend(tickets.iter().filter(|ticket| ticket.outcome != Outcome::Admitted).map(|one| line_of(one, count)));
    lines.retain(|line| !line.is_empty());
    ScanOutcome {
        scan: answer.scan,
        tickets: in_a_list(&tickets.iter().map(|ticket| ticket.ends.as_str()).collect::<Vec<_>>()),
        ..ScanOutcome::new(tone, word, lines)
    }
}

/// The admissions that can be undone after a scan of these codes: its own, and earlier ones of the same tickets.
pub fn undos<'a>(answer: &ScanAnswer, codes: impl Iterator<Item = &'a str>) -> Vec<UndoableAdmission> {
    let admitted_ends = answer.tickets.iter().filter(|ticket| ticket.outcome == Outcome::Admitted);
    let admitted_ends: Vec<&str> = admitted_ends.map(|ticket| ticket.ends.as_str()).collect();
    let own = UndoableAdmission { scan: answer.scan, ticket: None, ends: in_a_list(&admitted_ends), is_done: false };
    let earlier = codes.zip(&answer.tickets).filter_map(|(code, ticket)| {
        let (scan, ends) = (ticket.used_by?, ticket.ends.clone());
        Some(UndoableAdmission { scan, ticket: Some(code.to_owned()), ends, is_done: false })
    });
    (!admitted_ends.is_empty()).then_some(own).into_iter().chain(earlier).collect()
}

/// The outcome by the list, which admits all open tickets or none.
pub fn of_list(statuses: &[TicketStatus], made_at: &str) -> ScanOutcome {
    let count = statuses.len();
    let open = statuses.iter().filter(|one| **one == TicketStatus::Open).count();
    let made_at = clock(made_at);
    let by_list = || say!("door.by_list", time = Arg::Ours(&made_at));
    let Some(first) = statuses.iter().find(|one| **one != TicketStatus::Open) else {
        return ScanOutcome::new(Tone::Good, come_in(count), vec![by_list()]);
    };
    let line = match first {
        TicketStatus::Used { at, device } => say!("door.used_at", time = Arg::Ours(&clock(at)), place = device),
        TicketStatus::UsedHere => say!("door.used_here"),
        TicketStatus::Missing => say!("door.not_on_list_advice", time = Arg::Ours(&made_at)),
        TicketStatus::NotValid | TicketStatus::Open => String::new(),
    };
    let (tone, word) = match first {
        _ if open > 0 => (Tone::Partly, say!("door.partly", admitted = open, count = count)),
        TicketStatus::Used { .. } | TicketStatus::UsedHere => (Tone::Bad, word_of(Outcome::AlreadyUsed)),
        TicketStatus::NotValid => (Tone::Bad, word_of(Outcome::NotValid)),
        TicketStatus::Missing | TicketStatus::Open => (Tone::Unsure, say!("door.not_on_list")),
    };
    let lines = [line, by_list()].into_iter().filter(|line| !line.is_empty()).collect();
    ScanOutcome::new(tone, word, lines)
}

pub fn of_conflict(conflict: &ConflictView) -> String {
    let seat = conflict.seat.as_deref().unwrap_or_default();
    let time = clock(&conflict.at);
    match (&conflict.first_at, &conflict.first_device) {
        (Some(first_at), Some(first_device)) => say!(
            "door.let_in_twice",
            seat = seat,
            ends = &conflict.ends,
            first = Arg::Ours(&clock(first_at)),
            first_place = first_device,
            time = Arg::Ours(&time),
            place = &conflict.device
        ),
        _ => say!(
            "door.let_in_wrongly",
            seat = seat,
            ends = &conflict.ends,
            time = Arg::Ours(&time),
            place = &conflict.device,
            why = Arg::Ours(&word_of(conflict.why))
        ),
    }
}

fn come_in(count: usize) -> String {
    say!("door.come_in", count = count)
}

fn word_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Admitted => come_in(1),
        Outcome::AlreadyUsed | Outcome::Conflict => say!("door.already_used"),
        Outcome::OtherShow => say!("door.other_show"),
        Outcome::NotValid => say!("door.not_valid"),
        Outcome::Unknown => say!("door.unknown"),
        Outcome::Forged => say!("door.forged"),
    }
}

/// Why a ticket is refused; with the seat, if there are several.
fn line_of(ticket: &TicketAnswer, count: usize) -> String {
    let why = match (ticket.outcome, &ticket.used_at, &ticket.show, ticket.why) {
        (Outcome::AlreadyUsed | Outcome::Conflict, Some(at), ..) => {
            let place = ticket.used_where.as_deref().unwrap_or_default();
            say!("door.used_at", time = Arg::Ours(&clock(at)), place = place)
        }
        (Outcome::OtherShow, _, Some(show), _) => {
            let starts = Moment::parse(&show.starts_local).map_or_else(String::new, |at| at.in_words(current()));
            say!("door.for_show", film = &show.film, time = Arg::Ours(&starts), screen = &show.screen)
        }
        (Outcome::NotValid, _, _, Some(why)) => match why {
            NotValid::Cancelled => say!("door.why_cancelled"),
            NotValid::Refunded => say!("door.why_refunded"),
            NotValid::Exchanged => say!("door.why_exchanged"),
        },
        _ if count > 1 => word_of(ticket.outcome),
        _ => String::new(),
    };
    match &ticket.seat {
        Some(seat) if !why.is_empty() => say!("door.about_seat", seat = seat, why = Arg::Ours(&why)),
        Some(seat) => seat.clone(),
        None => why,
    }
}

pub fn clock(local: &str) -> String {
    Moment::parse(local).map_or_else(String::new, |at| at.time(current()))
}

/// Local date and time.
pub fn day_and_clock(local: &str) -> String {
    Moment::parse(local).map_or_else(String::new, |at| at.in_words(current()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::door::OtherShow;

    fn ticket(outcome: Outcome) -> TicketAnswer {
        let seat = Some("C7".to_owned());
        TicketAnswer {
            ends: "PQRS".to_owned(),
            outcome,
            seat,
            used_at: None,
            used_where: None,
            used_by: None,
            why: None,
            show: None,
        }
    }

    fn outcome_of(tickets: Vec<TicketAnswer>) -> (Tone, String, Vec<String>) {
        let outcome = of_answer(&ScanAnswer { scan: Uuid::nil(), tickets });
        (outcome.tone, outcome.word, outcome.lines)
    }

    #[test]
    fn each_answer_has_a_word_and_details() {
        let used = TicketAnswer {
            used_at: Some("2026-11-21T20:15:07".to_owned()),
            used_where: Some("Left door".to_owned()),
            ..ticket(Outcome::AlreadyUsed)
        };
        let show = OtherShow {
            id: Uuid::nil(),
            film: "Tide".to_owned(),
            screen: "Screen 2".to_owned(),
            starts_local: "2026-11-21T22:30:00".to_owned(),
        };
        let other = TicketAnswer { show: Some(show), ..ticket(Outcome::OtherShow) };
        let refunded = TicketAnswer { why: Some(NotValid::Refunded), ..ticket(Outcome::NotValid) };
        let forged = TicketAnswer { seat: None, ..ticket(Outcome::Forged) };
        for (ticket, tone, word, lines) in [
            (ticket(Outcome::Admitted), Tone::Good, "Checked in", vec!["C7"]),
            (used, Tone::Bad, "Already used", vec!["C7: at 20:15, Left door"]),
            (other, Tone::Bad, "For another show", vec!["C7: Tide, Sat 21 Nov, 22:30, Screen 2"]),
            (refunded, Tone::Bad, "No longer valid", vec!["C7: The seat was refunded."]),
            (forged, Tone::Bad, "Not a genuine ticket", vec![]),
        ] {
            let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
            assert_eq!(outcome_of(vec![ticket.clone()]), (tone, word.to_owned(), lines), "{ticket:?}");
        }
    }

    #[test]
    fn a_party_is_admitted_together_or_in_part() {
        let good = || ticket(Outcome::Admitted);
        assert_eq!(outcome_of(vec![good(), good()]).1, "All 2 checked in");
        let (tone, word, lines) = outcome_of(vec![good(), ticket(Outcome::NotValid), good()]);
        assert_eq!((tone, word.as_str()), (Tone::Partly, "2 of 3 checked in"));
        assert_eq!(lines, ["C7 and C7", "C7: No longer valid"]);
    }

    #[test]
    fn own_and_earlier_admissions_can_be_undone() {
        let (scan, earlier) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let used = TicketAnswer { used_by: Some(earlier), ends: "TUVW".to_owned(), ..ticket(Outcome::AlreadyUsed) };
        let codes = ["one", "two", "three"];
        let answer = ScanAnswer { scan, tickets: vec![ticket(Outcome::Admitted), used, ticket(Outcome::NotValid)] };
        let undoable = undos(&answer, codes.into_iter());
        let found: Vec<_> =
            undoable.iter().map(|undo| (undo.scan, undo.ticket.as_deref(), undo.ends.as_str())).collect();
        assert_eq!(found, [(scan, None, "PQRS"), (earlier, Some("two"), "TUVW")]);
        // Undoing one ticket of the earlier scan does not undo all of it, but undoing all of it undoes each.
        let all = UndoableAdmission { scan: earlier, ticket: None, ends: "PQRS and TUVW".to_owned(), is_done: false };
        assert!(undoable[1].is_undone_by(&undoable[1]) && undoable[1].is_undone_by(&all));
        assert!(!all.is_undone_by(&undoable[1]) && !undoable[0].is_undone_by(&undoable[1]));
        let none = ScanAnswer { scan, tickets: vec![ticket(Outcome::NotValid)] };
        assert_eq!(undos(&none, codes.into_iter()), []);
    }

    #[test]
    fn without_a_network_the_list_decides() {
        let made_at = "2026-11-21T18:40:00";
        let outcome_of = |statuses: &[TicketStatus]| of_list(statuses, made_at);
        assert_eq!(
            (
                outcome_of(&[TicketStatus::Open]).tone,
                outcome_of(&[TicketStatus::Open, TicketStatus::Open]).word.as_str()
            ),
            (Tone::Good, "All 2 checked in")
        );
        assert_eq!(outcome_of(&[TicketStatus::UsedHere]).tone, Tone::Bad);
        assert_eq!(outcome_of(&[TicketStatus::NotValid]).word, "No longer valid");
        let missing = outcome_of(&[TicketStatus::Missing]);
        assert_eq!(missing.tone, Tone::Unsure);
        assert!(missing.lines[0].contains("18:40"), "{missing:?}");
        assert_eq!(outcome_of(&[TicketStatus::Open, TicketStatus::Missing]).tone, Tone::Partly);
    }
}
