//! Limits on the tickets of a waiting room for each address and its network, and the puzzles in front of them.
//!
//! Two token buckets per room, shared by all replicas (`rate_limits`): the caller's address (IPv4, or an IPv6 /64), and
//! the network around it (/24, or /48). A ticket takes one token from each. The first ones of a full bucket are free,
//! the others cost a puzzle of this room (`puzzles`), and an empty bucket refuses. While Redis does not answer no
//! ticket is given out (503): a replica with its own count would grant an address its bucket once more, and numbers
//! come from Redis anyway.

use std::time::Duration;

use axum::http::HeaderMap;
use domain::waiting_room::TicketLimit;
use uuid::Uuid;

use super::room::ActiveRoom;
use crate::{AdmissionState, puzzles};
use http::{ApiResult, ClientAddress, Code, Problem};
use platform::ids;
use platform::rate_limits::{Allowance, TakeOutcome};

/// Names of the buckets, in the header `RateLimit` and in Redis.
const ADDRESS: &str = "queue-address";
const NETWORK: &str = "queue-network";
/// Jitter of `Retry-After`, milliseconds: callers who share an address do not retry together.
const SPREAD_MS: u64 = 20_000;

/// A request to join, with what its limits need.
#[derive(Clone, Copy)]
pub(super) struct Joiner<'a> {
    pub(super) owner: &'a str,
    pub(super) address: &'a ClientAddress,
    pub(super) headers: &'a HeaderMap,
    /// Identifies the request, so that a retry may present the same solution.
    pub(super) request: Uuid,
}

/// Tokens taken from buckets, which are returned if no ticket is given out.
#[derive(Debug, Default)]
pub(super) struct Counted(Vec<(Allowance, String)>);

/// Counts a new ticket for the address and the network of its caller.
///
/// # Errors
/// 428 if a puzzle must be solved first, 400 and 409 for an invalid or spent solution; 429 if address or
/// network have no ticket left, with the time to wait; 503 if Redis does not answer.
pub(super) async fn count(state: &AdmissionState, room: &ActiveRoom, joiner: Joiner<'_>) -> ApiResult<Counted> {
    let Some(of_address) = TicketLimit::of_address(state.admission_settings.queue_tickets_per_address) else {
        return Ok(Counted::default());
    };
    let asking = puzzles::TicketPuzzle { state, room: room.id, owner: joiner.owner };
    let has_solved = asking.is_solved(joiner.headers, joiner.request).await?;
    let buckets =
        [(ADDRESS, of_address, joiner.address.0.clone()), (NETWORK, of_address.of_network(), joiner.address.network())];
    let mut counted = Counted::default();
    for (name, limit, whose) in buckets {
        let of = Allowance { name, burst: limit.burst, each_ms: limit.each_ms };
        let whose = format!("{} {whose}", room.id);
        let reserved = if has_solved { 0 } else { limit.reserved() };
        let refusal = match state.rate_limits.take_shared(&of, &whose, reserved).await {
            Some(TakeOutcome::Granted) => {
                counted.0.push((of, whose));
                continue;
            }
            Some(TakeOutcome::Reserved) => asking.required(),
            Some(TakeOutcome::Empty(pause)) => refusal(&of, pause),
            None => {
                let detail = "The waiting room gives out no tickets at this moment. Please try again in a few seconds.";
                Problem::new(Code::LockStoreUnavailable, detail)
            }
        };
        counted.give_back(state).await;
        return Err(refusal);
    }
    Ok(counted)
}

impl Counted {
    /// Returns the tokens, because no ticket was given out.
    pub(super) async fn give_back(self, state: &AdmissionState) {
        for (of, whose) in self.0 {
            state.rate_limits.give_back(&of, &whose).await;
        }
    }
}

fn refusal(of: &Allowance, pause: Duration) -> Problem {
    let pause = pause + Duration::from_millis(ids::jitter(SPREAD_MS));
    let detail = format!(
        "Very many people have joined from your network. Please try again in {} s: who joins before the room opens has the \
         same chance in the draw as all others.",
        pause.as_millis().div_ceil(1_000).max(1)
    );
    tracing::info!(limit = of.name, "join of a waiting room refused: no ticket left for the address");
    Problem::new(Code::TooManyAttempts, detail).with_limit((*of).into()).with_retry_after(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_wait_with_jitter() {
        let of = Allowance { name: ADDRESS, burst: 120, each_ms: 10_000 };
        let problem = refusal(&of, Duration::from_secs(7));
        assert_eq!(problem.code(), Code::TooManyAttempts);
        let response = axum::response::IntoResponse::into_response(problem);
        let wait: u64 = response.headers()["retry-after"].to_str().expect("text").parse().expect("seconds");
        assert!((7..=7 + SPREAD_MS / 1_000).contains(&wait), "{wait}");
    }
}
