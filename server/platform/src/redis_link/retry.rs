//! Classifies failures: which are retried, on which process, and after which pause.
//!
//! All our scripts may be repeated, so every failure that may be temporary is retried.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::ids;

/// Deadline of a call with all its attempts; after it the caller answers "try again later".
pub(super) const CALL_DEADLINE: Duration = Duration::from_secs(3);
/// Deadline of one attempt, connecting included. Two attempts that time out leave time for a third.
pub(super) const ATTEMPT_DEADLINE: Duration = Duration::from_millis(1_400);
/// Minimum time left for another attempt: a shorter one could time out on a healthy Redis and count as its failure.
pub(super) const MIN_ATTEMPT_TIME: Duration = Duration::from_millis(100);
/// Maximum number of attempts per call.
pub(super) const MAX_ATTEMPTS: u32 = 3;
/// Maximum number of redirections per call; a slot that is being moved needs two.
pub(super) const MAX_REDIRECTS: u32 = 5;
/// Maximum pause before the second attempt, milliseconds; pauses have full jitter.
const FIRST_PAUSE_MS: u64 = 40;
/// Growth factor of the maximum pause.
const PAUSE_GROWTH: u64 = 4;

/// A random pause after that many attempts.
pub(super) fn pause(attempts: u32) -> Duration {
    Duration::from_millis(ids::jitter(FIRST_PAUSE_MS * PAUSE_GROWTH.pow(attempts.saturating_sub(1))))
}

/// The failure of an attempt.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AttemptError {
    /// The breaker is open for this long.
    #[error("not called: the circuit breaker is open")]
    CircuitOpen(Duration),
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The process with this slot, or the master, is unknown.
    #[error("no server to call: {0}")]
    NoServer(&'static str),
    /// An error of Redis or of the connection.
    #[error(transparent)]
    Redis(#[from] RedisError),
}

/// The next step after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Send the script in full: the process does not know its hash.
    UnknownScript,
    /// Send the call to this address: permanently (`MOVED`) or once (`ASK`).
    Redirected { slot: u16, address: String, is_permanent: bool },
    /// Retry after a pause. `maybe_done`: the attempt may have taken effect.
    Retryable { maybe_done: bool },
    /// Do not retry now; a later call may succeed.
    NotRetryable,
    /// Do not retry: a script or a setting of ours is wrong.
    Refused,
}

/// Decides whether and how a failed attempt is retried.
pub(super) fn decide_retry(fault: &AttemptError) -> RetryDecision {
    let error = match fault {
        AttemptError::CircuitOpen(_) => return RetryDecision::NotRetryable,
        AttemptError::TimedOut => return RetryDecision::Retryable { maybe_done: true },
        AttemptError::NoServer(_) => return RetryDecision::Retryable { maybe_done: false },
        AttemptError::Redis(error) => error,
    };
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => RetryDecision::Retryable { maybe_done: true },
        ErrorKind::Server(kind) => of_server(kind, error),
        // BUSY: a script blocks Redis. Not retried: MISCONF (the disk is full), NOREPLICAS (a replica is missing).
        ErrorKind::Extension if error.code() == Some("BUSY") => RetryDecision::Retryable { maybe_done: false },
        _ => RetryDecision::NotRetryable,
    }
}

fn of_server(kind: ServerErrorKind, error: &RedisError) -> RetryDecision {
    use ServerErrorKind as Kind;
    match kind {
        Kind::NoScript => RetryDecision::UnknownScript,
        Kind::Moved | Kind::Ask => match error.redirect_node() {
            Some((address, slot)) => {
                RetryDecision::Redirected { slot, address: address.to_owned(), is_permanent: kind == Kind::Moved }
            }
            None => RetryDecision::Retryable { maybe_done: false },
        },
        Kind::BusyLoading | Kind::TryAgain | Kind::ClusterDown | Kind::MasterDown | Kind::ReadOnly => {
            RetryDecision::Retryable { maybe_done: false }
        }
        // A rejected transaction: the crate does not return which of its commands was rejected, nor why.
        Kind::ResponseError | Kind::CrossSlot | Kind::ExecAbort => RetryDecision::Refused,
        _ => RetryDecision::NotRetryable,
    }
}

/// True if the error counts as a failure for the breaker: the process cannot serve any call.
pub(super) fn is_breaker_failure(error: &RedisError) -> bool {
    is_lost(error)
        || matches!(error.kind(), ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown))
}

/// True if the connection is unusable. A master that became a replica counts: another process may have its name by now.
pub(super) fn is_lost(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::AuthenticationFailed
            | ErrorKind::Server(ServerErrorKind::ReadOnly)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error that the client makes of an error line of Redis.
    fn redis_error(line: &str) -> AttemptError {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("a reply");
        AttemptError::Redis(value.extract_error().expect_err("an error"))
    }

    #[test]
    fn a_temporary_refusal_is_retried_as_not_done() {
        for line in [
            "LOADING Redis is loading the dataset in memory",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "CLUSTERDOWN Hash slot not served",
            "MASTERDOWN Link with MASTER is down",
            "READONLY You can't write against a read only replica. script: 3a1, on @user_script:1.",
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        ] {
            assert_eq!(decide_retry(&redis_error(line)), RetryDecision::Retryable { maybe_done: false }, "{line}");
        }
    }

    #[test]
    fn a_timeout_or_lost_connection_is_retried_as_maybe_done() {
        let cut = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(decide_retry(&AttemptError::Redis(cut)), RetryDecision::Retryable { maybe_done: true });
        assert_eq!(decide_retry(&AttemptError::TimedOut), RetryDecision::Retryable { maybe_done: true });
    }

    #[test]
    fn redirections_are_followed() {
        let elsewhere =
            |is_permanent| RetryDecision::Redirected { slot: 3_999, address: "10.0.0.2:6381".into(), is_permanent };
        assert_eq!(decide_retry(&redis_error("MOVED 3999 10.0.0.2:6381")), elsewhere(true));
        assert_eq!(decide_retry(&redis_error("ASK 3999 10.0.0.2:6381")), elsewhere(false));
    }

    #[test]
    fn a_full_or_misconfigured_redis_is_not_retried_at_once() {
        for line in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "MISCONF Errors writing to the AOF file: No space left on device",
            "NOREPLICAS Not enough good replicas to write.",
            "NOAUTH Authentication required.",
            "NOPERM this user has no permissions to run the 'evalsha' command",
        ] {
            assert_eq!(decide_retry(&redis_error(line)), RetryDecision::NotRetryable, "{line}");
        }
    }

    #[test]
    fn a_script_error_is_never_retried() {
        for line in ["ERR user_script:1: Script attempted to access a non local key", "CROSSSLOT Keys in request"] {
            assert_eq!(decide_retry(&redis_error(line)), RetryDecision::Refused, "{line}");
        }
        assert_eq!(decide_retry(&redis_error("NOSCRIPT No matching script.")), RetryDecision::UnknownScript);
    }

    #[test]
    fn two_attempts_that_time_out_leave_time_for_a_third() {
        assert!(pause(1) <= Duration::from_millis(FIRST_PAUSE_MS));
        let longest = Duration::from_millis(FIRST_PAUSE_MS * (1 + PAUSE_GROWTH));
        assert!(
            ATTEMPT_DEADLINE * 2 + longest <= CALL_DEADLINE,
            "two attempts that hang leave room for a third that does not"
        );
    }
}
