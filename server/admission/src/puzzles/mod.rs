//! Puzzles: in a rush, a visitor's first hold costs a proof of work (`domain::puzzle`).
//!
//! They apply to flash sales and shows with a waiting room, and only while the attempts per second exceed
//! [`crate::AdmissionSettings::puzzle_holds_per_s`]. All other shows cost one look at the show and no call of a store.
//! Each replica decides by its own load ([`loads`]).
//!
//! A challenge is signed, and bound to the visitor and the show ([`challenge`]): nothing is stored until its solution
//! arrives. The solution is then spent on one request and its retries, and exempts its visitor for a while ([`spent`]).
//! While Redis is unavailable each replica remembers that itself, as it counts attempts itself (`rate_limits`); no
//! seats can be taken then anyway.
//!
//! Staff of the theatre solve no puzzles: they take seats for customers at the counter. Clients with a
//! theatre's API key and the box office's own calls do not take seats this way.

mod challenge;
mod loads;
mod spent;

use std::time::Duration;

use axum::http::HeaderMap;
use domain::api::PuzzleView;
use domain::puzzle::{challenge_of, is_solved, required_bits};
use domain::time::Timestamp;
use domain::waiting_room::TICKET_BITS;
use moka::future::Cache;
use uuid::Uuid;

use crate::AdmissionState;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use identity::{Visitor, accounts};
use platform::ids;
use platform::telemetry::{PuzzleOutcome, puzzle};

use challenge::Signer;
use loads::Loads;
use spent::SpentSolutions;

/// Request header with a solution.
const SOLUTION_HEADER: &str = "puzzle-solution";
/// Maximum length of a solution, bytes.
const MAX_BYTES: usize = 128;
/// Time for which membership of a theatre's staff is cached.
const STAFF_KNOWN_FOR: Duration = Duration::from_secs(60);
/// Maximum of cached accounts.
const MAX_ACCOUNTS: u64 = 50_000;

/// State of the puzzles on one replica.
pub struct Puzzles {
    signer: Signer,
    loads: Loads,
    spent: SpentSolutions,
    /// Cached answers by account and show: true if the account works at the show's theatre.
    staff: Cache<(Uuid, Uuid), bool>,
}

impl Puzzles {
    /// Creates the state.
    #[must_use]
    pub fn new(redis_prefix: &str, token_secrets: &[String]) -> Self {
        Self {
            signer: Signer::new(token_secrets),
            loads: Loads::default(),
            spent: SpentSolutions::new(redis_prefix),
            staff: Cache::builder().max_capacity(MAX_ACCOUNTS).time_to_live(STAFF_KNOWN_FOR).build(),
        }
    }
}

/// Allows an attempt at seats, or requires a solution first. `request` identifies the request, so that a retry may
/// present the same solution.
///
/// # Errors
/// 428 if a puzzle must be solved, 400 for an invalid solution, 409 for a spent one; each with a new puzzle.
pub async fn check(
    state: &AdmissionState,
    show: &Show,
    visitor: &Visitor,
    request: Uuid,
    headers: &HeaderMap,
) -> ApiResult<()> {
    let threshold = state.admission_settings.puzzle_holds_per_s;
    if threshold == 0 || !is_sold_in_a_rush(state, show) {
        return Ok(());
    }
    let (puzzles, now) = (&state.puzzles, state.clock.now());
    let Some(bits) = required_bits(puzzles.loads.record(show.id, now), threshold) else { return Ok(()) };
    let puzzle_request = PuzzleRequest { state, show: show.id, owner: &visitor.owner, bits, now };
    // Boxed: every attempt at seats runs through here, and few reach a store.
    if let Some(solution) = headers.get(SOLUTION_HEADER) {
        return Box::pin(puzzle_request.check_solution(solution.as_bytes(), request)).await;
    }
    let is_exempt = Box::pin(puzzles.spent.is_exempt(state, show.id, &visitor.owner)).await;
    if is_exempt || is_staff_of(state, show, visitor.account).await {
        return Ok(());
    }
    puzzle(PuzzleOutcome::Asked);
    let detail =
        "Many want seats of this show just now. Solve the puzzle, then send the same request with the solution.";
    Err(puzzle_request.refuse_with_puzzle(Code::PuzzleWanted, detail))
}

/// True for shows for which puzzles may be required. Reads memory only. A rehearsal's visitors would solve them on the
/// server.
fn is_sold_in_a_rush(state: &AdmissionState, show: &Show) -> bool {
    !show.is_rehearsal && (show.flash_sale || state.waiting_rooms.of(show.id).is_some())
}

/// True if the account works at the show's theatre. The database is queried once a minute per account.
pub async fn is_staff_of(state: &AdmissionState, show: &Show, account: Option<Uuid>) -> bool {
    let Some(account) = account else { return false };
    let query = accounts::works_at(&state.pg, account, &show.theatre_id);
    // Boxed: every attempt at seats runs through here, and hardly any reaches the query.
    match Box::pin(state.puzzles.staff.try_get_with((account, show.id), query)).await {
        Ok(works) => works,
        Err(cause) => {
            tracing::debug!(%cause, "read staff of the theatre failed: the account counts as a visitor");
            false
        }
    }
}

/// True if the account is cached as staff. Reads memory only.
pub async fn is_cached_staff_of(state: &AdmissionState, show: Uuid, account: Option<Uuid>) -> bool {
    let Some(account) = account else { return false };
    state.puzzles.staff.get(&(account, show)).await.unwrap_or(false)
}

/// Caches that an account works at the show's theatre.
pub async fn cache_staff_of(state: &AdmissionState, show: Uuid, account: Uuid) {
    state.puzzles.staff.insert((account, show), true).await;
}

/// The puzzle for a new ticket of a waiting room, bound to room and visitor. A solution pays for one ticket.
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
    /// Checks the solution in a request; `false` without one.
    ///
    /// # Errors
    /// 400 for an invalid solution, 409 for a spent one; each with a new puzzle.
    pub async fn is_solved(&self, headers: &HeaderMap, request: Uuid) -> ApiResult<bool> {
        let Some(solution) = headers.get(SOLUTION_HEADER) else { return Ok(false) };
        self.puzzle_request().check_solution(solution.as_bytes(), request).await.map(|()| true)
    }

    /// Requires a solution: 428.
    #[must_use]
    pub fn required(&self) -> Problem {
        puzzle(PuzzleOutcome::Asked);
        let detail = "Many join from your network. Solve the puzzle, then send the same request with the solution.";
        self.puzzle_request().refuse_with_puzzle(Code::PuzzleWanted, detail)
    }

    fn puzzle_request(&self) -> PuzzleRequest<'_> {
        let Self { state, room, owner } = *self;
        PuzzleRequest { state, show: room, owner, bits: TICKET_BITS, now: state.clock.now() }
    }
}

struct PuzzleRequest<'a> {
    state: &'a AdmissionState,
    /// The show, or the waiting room.
    show: Uuid,
    owner: &'a str,
    bits: u8,
    now: Timestamp,
}

impl PuzzleRequest<'_> {
    /// Checks a solution: two digests, and a call of Redis if they are right.
    async fn check_solution(&self, solution: &[u8], request: Uuid) -> ApiResult<()> {
        let puzzles = &self.state.puzzles;
        let solution = std::str::from_utf8(solution).ok().filter(|solution| solution.len() <= MAX_BYTES);
        let parameters = solution.and_then(|solution| {
            let challenge = challenge_of(solution)?;
            Some((solution, puzzles.signer.read(self.show, self.owner, challenge)?))
        });
        let Some((solution, parameters)) = parameters else {
            return Err(self.refuse_invalid(
                "This is no solution of a puzzle that you were given for this show. Here is another.",
            ));
        };
        if parameters.until <= self.now {
            return Err(self.refuse_invalid("This puzzle has run out. Here is another."));
        }
        if !is_solved(solution, parameters.bits) {
            return Err(self.refuse_invalid("This does not solve the puzzle: too few zero bits. Here is another."));
        }
        if !puzzles.spent.spend(self.state, (self.show, self.owner), parameters.salt, request).await {
            puzzle(PuzzleOutcome::Replayed);
            let detail = "This solution was used for another request. If you are asked again, solve another puzzle.";
            return Err(self.refuse_with_puzzle(Code::PuzzleSpent, detail));
        }
        puzzle(PuzzleOutcome::Solved);
        Ok(())
    }

    fn refuse_invalid(&self, detail: &'static str) -> Problem {
        puzzle(PuzzleOutcome::Wrong);
        self.refuse_with_puzzle(Code::PuzzleWrong, detail)
    }

    fn refuse_with_puzzle(&self, code: Code, detail: &'static str) -> Problem {
        let parameters =
            challenge::Parameters { bits: self.bits, until: self.now.plus_ms(challenge::LIFE_MS), salt: salt() };
        let challenge = self.state.puzzles.signer.sign(self.show, self.owner, parameters);
        Problem::new(code, detail).with_puzzle(PuzzleView { challenge, bits: self.bits })
    }
}

/// A random salt, which makes each challenge unique.
fn salt() -> u64 {
    let bits = ids::random_bits();
    bits.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}
