//! Puzzles: where many want seats at once, a visitor's first hold costs a little work (`domain::puzzle`).
//!
//! Asked for in shows that are sold in a rush, a flash sale or through a waiting room, and only while more people try
//! than [`crate::AdmissionSettings::puzzle_holds_per_s`]. Everywhere else nothing happens here: one look at the show, no
//! store. Each replica judges by what comes to itself ([`loads`]).
//!
//! A challenge is signed, and bound to the visitor and the show ([`challenge`]): nothing is kept of it until it comes
//! back solved. Then it is spent, on one request and its repeats, and its visitor passes for a while ([`spent`]). While
//! Redis is away each replica remembers that by itself, as it counts tries by itself (`rate_limits`); no
//! seats can be taken then anyhow.
//!
//! Not asked are people who work in the theatre: they take seats for whoever stands in front of them. Programs with a
//! theatre's key and the box office's own calls take no seats this way.

mod challenge;
mod loads;
mod spent;

use std::time::Duration;

use axum::http::HeaderMap;
use domain::api::PuzzleView;
use domain::puzzle::{bits_asked, challenge_of, is_solved};
use domain::time::Timestamp;
use domain::waiting_room::TICKET_BITS;
use moka::future::Cache;
use uuid::Uuid;

use crate::AdmissionState;
use catalogue::Show;
use http::{Code, Problem};
use identity::{Visitor, accounts};
use platform::ids;
use platform::telemetry::{PuzzleOutcome, puzzle};

use challenge::Signer;
use loads::Loads;
use spent::Spent;

/// Where a solution is.
const SOLUTION_HEADER: &str = "puzzle-solution";
/// Longest solution looked at, bytes.
const MAX_BYTES: usize = 128;
/// Whoever works in a theatre is known to for so long…
const STAFF_KNOWN_FOR: Duration = Duration::from_secs(60);
/// …so many accounts at a time.
const MAX_ACCOUNTS: u64 = 50_000;

/// What a replica needs for puzzles.
pub struct Puzzles {
    signer: Signer,
    loads: Loads,
    spent: Spent,
    /// Whether an account works where a show is.
    staff: Cache<(Uuid, Uuid), bool>,
}

impl Puzzles {
    /// From the settings.
    #[must_use]
    pub fn new(redis_prefix: &str, token_secrets: &[String]) -> Self {
        Self {
            signer: Signer::new(token_secrets),
            loads: Loads::default(),
            spent: Spent::new(redis_prefix),
            staff: Cache::builder().max_capacity(MAX_ACCOUNTS).time_to_live(STAFF_KNOWN_FOR).build(),
        }
    }
}

/// Lets somebody on to the seats, or asks them for a solution first. `request` is what the request is known by: a
/// repeat of it may bring the same solution.
///
/// # Errors
/// 428 when a puzzle is to be solved, 400 for a solution that is none, 409 for one that was used; each brings a puzzle.
pub async fn check(
    state: &AdmissionState,
    show: &Show,
    visitor: &Visitor,
    request: Uuid,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let calm = state.admission_settings.puzzle_holds_per_s;
    if calm == 0 || !is_sold_in_a_rush(state, show) {
        return Ok(());
    }
    let (puzzles, now) = (&state.puzzles, state.clock.now());
    let Some(bits) = bits_asked(puzzles.loads.note(show.id, now), calm) else { return Ok(()) };
    let asking = Asking { state, show: show.id, owner: &visitor.owner, bits, now };
    if let Some(solution) = headers.get(SOLUTION_HEADER) {
        return asking.look(solution.as_bytes(), request).await;
    }
    if puzzles.spent.passes(state, show.id, &visitor.owner).await || works_there(state, show, visitor.account).await {
        return Ok(());
    }
    puzzle(PuzzleOutcome::Asked);
    let detail =
        "Many want seats of this show just now. Solve the puzzle, then send the same request with the solution.";
    Err(asking.again(Code::PuzzleWanted, detail))
}

/// Whether so many may want its seats at once that it matters who asks: a look at memory.
fn is_sold_in_a_rush(state: &AdmissionState, show: &Show) -> bool {
    show.flash_sale || state.waiting_rooms.of(show.id).is_some()
}

/// Whether somebody is signed in who works where the show is. The database is asked once a minute for each account.
pub async fn works_there(state: &AdmissionState, show: &Show, account: Option<Uuid>) -> bool {
    let Some(account) = account else { return false };
    let look = accounts::works_at(&state.pg, account, &show.theatre_id);
    // Boxed: the way to seats leads by here, and hardly anybody on it is asked about.
    match Box::pin(state.puzzles.staff.try_get_with((account, show.id), look)).await {
        Ok(works) => works,
        Err(cause) => {
            tracing::debug!(%cause, "nobody can say who works there: everybody is a visitor");
            false
        }
    }
}

/// Whether that is known by now: a look at memory.
pub async fn is_known_to_work_there(state: &AdmissionState, show: Uuid, account: Option<Uuid>) -> bool {
    let Some(account) = account else { return false };
    state.puzzles.staff.get(&(account, show)).await.unwrap_or(false)
}

/// Somebody was found to work there.
pub async fn note_works_there(state: &AdmissionState, show: Uuid, account: Uuid) {
    state.puzzles.staff.insert((account, show), true).await;
}

/// The puzzle for a new ticket of a waiting room. It is bound to room and visitor, and a solution pays for one ticket.
#[derive(Clone, Copy)]
pub struct TicketPuzzle<'a> {
    /// The server.
    pub state: &'a AdmissionState,
    /// The waiting room.
    pub room: Uuid,
    /// The visitor.
    pub owner: &'a str,
}

impl TicketPuzzle<'_> {
    /// Checks the solution that a request brings; `false` when it brings none.
    ///
    /// # Errors
    /// 400 for an invalid solution, 409 for one that was used; each with a new puzzle.
    pub async fn is_solved(&self, headers: &HeaderMap, request: Uuid) -> Result<bool, Problem> {
        let Some(solution) = headers.get(SOLUTION_HEADER) else { return Ok(false) };
        self.asking().look(solution.as_bytes(), request).await.map(|()| true)
    }

    /// Asks for a solution: 428.
    #[must_use]
    pub fn wanted(&self) -> Problem {
        puzzle(PuzzleOutcome::Asked);
        let detail = "Many join from your network. Solve the puzzle, then send the same request with the solution.";
        self.asking().again(Code::PuzzleWanted, detail)
    }

    fn asking(&self) -> Asking<'_> {
        let Self { state, room, owner } = *self;
        Asking { state, show: room, owner, bits: TICKET_BITS, now: state.clock.now() }
    }
}

/// Who is asked for what.
struct Asking<'a> {
    state: &'a AdmissionState,
    /// The show, or the waiting room.
    show: Uuid,
    owner: &'a str,
    bits: u8,
    now: Timestamp,
}

impl Asking<'_> {
    /// Looks at a solution: two digests, and a question to Redis if they are right.
    async fn look(&self, solution: &[u8], request: Uuid) -> Result<(), Problem> {
        let puzzles = &self.state.puzzles;
        let solution = std::str::from_utf8(solution).ok().filter(|solution| solution.len() <= MAX_BYTES);
        let asked = solution.and_then(|solution| {
            let challenge = challenge_of(solution)?;
            Some((solution, puzzles.signer.read(self.show, self.owner, challenge)?))
        });
        let Some((solution, asked)) = asked else {
            return Err(
                self.wrong("This is no solution of a puzzle that you were given for this show. Here is another.")
            );
        };
        if asked.until <= self.now {
            return Err(self.wrong("This puzzle has run out. Here is another."));
        }
        if !is_solved(solution, asked.bits) {
            return Err(self.wrong("This does not solve the puzzle: too few zero bits. Here is another."));
        }
        if !puzzles.spent.spend(self.state, (self.show, self.owner), asked.salt, request).await {
            puzzle(PuzzleOutcome::Replayed);
            let detail = "This solution was used for another request. If you are asked again, solve another puzzle.";
            return Err(self.again(Code::PuzzleSpent, detail));
        }
        puzzle(PuzzleOutcome::Solved);
        Ok(())
    }

    fn wrong(&self, detail: &'static str) -> Problem {
        puzzle(PuzzleOutcome::Wrong);
        self.again(Code::PuzzleWrong, detail)
    }

    /// A problem with a puzzle to be solved.
    fn again(&self, code: Code, detail: &'static str) -> Problem {
        let asked = challenge::Asked { bits: self.bits, until: self.now.plus_ms(challenge::LIFE_MS), salt: salt() };
        let challenge = self.state.puzzles.signer.sign(self.show, self.owner, asked);
        Problem::new(code, detail).with_puzzle(PuzzleView { challenge, bits: self.bits })
    }
}

/// What makes each challenge another one.
fn salt() -> u64 {
    let bits = ids::random_bits();
    bits.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}
