//! The Redis entry of a key, as bytes: the kind, the digest of the request, and the fields of the kind.
//!
//! | kind | then |
//! |---|---|
//! | `P` pending | 16 bytes token of the claim, 16 bytes id of the replica |
//! | `C` completed | status (2 bytes), end (8 bytes, milliseconds since 1970), body |
//! | `F` failed, free for another attempt | status (2 bytes), body |
//!
//! Numbers are big-endian. `keys.lua` reads the kind and the token, and nothing else.

use bytes::Bytes;
use domain::time::Timestamp;

use crate::idempotency::Answer;

/// The id of a claim or of a replica.
pub(crate) type Id = [u8; 16];
/// The hash of a request.
type RequestHash = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    pub(crate) request_hash: RequestHash,
    pub(crate) state: KeyState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// The work is under way.
    Pending(KeyClaim),
    /// Answered.
    Completed(Answer),
    /// Refused or failed: status and body, for a caller who polls. The key is free.
    Failed(u16, Bytes),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyClaim {
    /// The id of this claim.
    pub(crate) token: Id,
    /// The replica that made it.
    pub(crate) replica: Id,
}

pub(super) fn pending(request_hash: &RequestHash, claim: KeyClaim) -> Vec<u8> {
    [b"P", &request_hash[..], &claim.token, &claim.replica].concat()
}

/// A completed entry that expires at `until`.
pub(super) fn completed(request_hash: &RequestHash, answer: &Answer, until: Timestamp) -> Vec<u8> {
    let (status, until) = (answer.status().as_u16().to_be_bytes(), until.0.to_be_bytes());
    [b"C", &request_hash[..], &status, &until, answer.body()].concat()
}

pub(super) fn failed(request_hash: &RequestHash, status: u16, body: &[u8]) -> Vec<u8> {
    [b"F", &request_hash[..], &status.to_be_bytes(), body].concat()
}

impl KeyEntry {
    /// Decodes an entry; `None` if it is malformed.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (request_hash, rest) = rest.split_first_chunk::<32>()?;
        let state = match kind {
            b'P' => {
                let (token, replica) = rest.split_first_chunk::<16>()?;
                KeyState::Pending(KeyClaim { token: *token, replica: replica.try_into().ok()? })
            }
            b'C' => {
                let (status, rest) = rest.split_first_chunk::<2>()?;
                let (until, body) = rest.split_first_chunk::<8>()?;
                let until = Timestamp(i64::from_be_bytes(*until));
                let body = Bytes::copy_from_slice(body);
                KeyState::Completed(Answer::stored(u16::from_be_bytes(*status), body, until).ok()?)
            }
            b'F' => {
                let (status, body) = rest.split_first_chunk::<2>()?;
                KeyState::Failed(u16::from_be_bytes(*status), Bytes::copy_from_slice(body))
            }
            _ => return None,
        };
        Some(Self { request_hash: *request_hash, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    const HASH: RequestHash = [7; 32];
    const CLAIM: KeyClaim = KeyClaim { token: [1; 16], replica: [2; 16] };

    #[test]
    fn every_kind_decodes_to_what_was_encoded() {
        let answer = Answer::stored(201, Bytes::from_static(b"{\"a\":1}"), Timestamp(1_764_000_000_000)).expect("201");
        for (bytes, state) in [
            (pending(&HASH, CLAIM), KeyState::Pending(CLAIM)),
            (completed(&HASH, &answer, Timestamp(1_764_000_000_000)), KeyState::Completed(answer.clone())),
            (failed(&HASH, 410, b"{}"), KeyState::Failed(410, Bytes::from_static(b"{}"))),
        ] {
            assert_eq!(KeyEntry::read(&bytes), Some(KeyEntry { request_hash: HASH, state }));
        }
        let empty = Answer::stored(StatusCode::NO_CONTENT.as_u16(), Bytes::new(), Timestamp(5)).expect("204");
        let read = KeyEntry::read(&completed(&HASH, &empty, Timestamp(5))).expect("an entry");
        assert_eq!(read.state, KeyState::Completed(empty));
    }

    #[test]
    fn the_token_is_at_the_offset_in_the_script() {
        let script = include_str!("keys.lua");
        let bytes = pending(&HASH, CLAIM);
        let from = bytes.windows(16).position(|window| window == CLAIM.token).expect("the token") + 1;
        assert!(script.contains(&format!("TOKEN_FROM, TOKEN_TO = {from}, {}", from + 15)));
    }

    #[test]
    fn a_malformed_entry_is_refused() {
        for bytes in [&b""[..], b"P", b"O", &[b'X'; 80], &pending(&HASH, CLAIM)[..60], &[b'C'; 40]] {
            assert_eq!(KeyEntry::read(bytes), None, "{bytes:?}");
        }
    }
}
