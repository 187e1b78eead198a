//! Lists the tickets of a show for a device that may lose its network: digests and their validity, sealed with the
//! signature, the device and the expiry.

use domain::api::door::{DoorList, ListSeal, UsedTicket};
use domain::door::{LIST_LIFE_MS, digest};
use domain::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::scan::require_open_door;
use super::sql;
use crate::BackofficeState;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use platform::clock::from_utc;

/// Maximum number of tickets on a list: the limit of the memory of a telephone.
const MAX_LISTED: i64 = 100_000;

/// Builds the current list of the show.
pub(super) async fn list(state: &BackofficeState, show: &Show, device: Uuid) -> ApiResult<DoorList> {
    let now = state.clock.now();
    require_open_door(show, now)?;
    let rows = sql::of_show(&state.pg, show.id, MAX_LISTED + 1).await?;
    if rows.len() as i64 > MAX_LISTED {
        let detail = "The show has more tickets than a device can keep. Its door needs a network.";
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let (mut open, mut used, mut not_valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let digest = digest(show.id, &row.code);
        match (row.is_good, row.used_at, row.used_where) {
            (_, Some(at), Some(device)) => {
                used.push(UsedTicket { digest, at: show.local_iso(from_utc(at)), device });
            }
            (true, ..) => open.push(digest),
            (false, ..) => not_valid.push(digest),
        }
    }
    let scope = ListScope { theatre: &show.theatre_id, show: show.id };
    let digests = open.iter().chain(used.iter().map(|ticket| &ticket.digest)).chain(&not_valid).map(String::as_str);
    let seal = seal(scope, device, now, digests, &state.token_secrets);
    Ok(DoorList { seal, made_at: show.local_iso(now), open, used, not_valid })
}

/// Prefix of the signed bytes: separates this use of the secret from all others.
const PURPOSE: &[u8] = b"rowlock door list 1\n";

#[derive(Clone, Copy, Debug)]
pub(super) struct ListScope<'a> {
    pub(super) theatre: &'a str,
    pub(super) show: Uuid,
}

/// Seals a list of these digests with the first secret.
fn seal<'a>(
    scope: ListScope<'_>,
    device: Uuid,
    now: Timestamp,
    digests: impl Iterator<Item = &'a str>,
    secrets: &[String],
) -> ListSeal {
    let mut content = Sha256::new();
    for digest in digests {
        content.update(digest.as_bytes());
        content.update(b"\n");
    }
    let mut seal = ListSeal {
        device,
        made_at_ms: now.0,
        expires_at_ms: now.plus_ms(LIST_LIFE_MS).0,
        content: hex::encode(content.finalize()),
        signature: String::new(),
    };
    let secret = secrets.first().map(String::as_bytes).unwrap_or_default();
    seal.signature = hex::encode(mac(scope, &seal, secret).finalize().into_bytes());
    seal
}

/// Verifies a seal for this device and show; returns the time the list was made. An expired list is accepted: its
/// admissions have happened. 400 `list_invalid`.
pub(super) fn check_seal(
    scope: ListScope<'_>,
    device: Uuid,
    seal: &ListSeal,
    secrets: &[String],
) -> ApiResult<Timestamp> {
    let claimed = hex::decode(&seal.signature).unwrap_or_default();
    let is_ours = |secret: &String| mac(scope, seal, secret.as_bytes()).verify_slice(&claimed).is_ok();
    if seal.device == device && secrets.iter().any(is_ours) {
        return Ok(Timestamp(seal.made_at_ms));
    }
    let detail = "The seal of the list is not ours, or of another device or show. Nothing was settled.";
    Err(Problem::new(Code::ListInvalid, detail))
}

fn mac(scope: ListScope<'_>, seal: &ListSeal, secret: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length is a key");
    mac.update(PURPOSE);
    // All fields have a fixed length, except the theatre, which comes last, and the content, which has a length prefix.
    mac.update(scope.show.as_bytes());
    mac.update(seal.device.as_bytes());
    mac.update(&seal.made_at_ms.to_be_bytes());
    mac.update(&seal.expires_at_ms.to_be_bytes());
    mac.update(&(seal.content.len() as u64).to_be_bytes());
    mac.update(seal.content.as_bytes());
    mac.update(scope.theatre.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_verifies_only_for_its_device_show_and_content() {
        let secrets = ["a secret of this test; thirty-two bytes or more".to_owned()];
        let (show, device, now) = (Uuid::from_u128(1), Uuid::from_u128(2), Timestamp(1_000));
        let scope = ListScope { theatre: "aurora", show };
        let seal = seal(scope, device, now, ["aa", "bb"].into_iter(), &secrets);
        let judge = |scope, device, seal: &ListSeal, secrets: &[String]| {
            check_seal(scope, device, seal, secrets).map_err(|problem| problem.code())
        };
        assert_eq!(judge(scope, device, &seal, &secrets), Ok(now));
        let newer = ["another secret, that is the first one now".to_owned(), secrets[0].clone()];
        assert_eq!(judge(scope, device, &seal, &newer), Ok(now), "while a secret is being replaced");
        let refused = Err(Code::ListInvalid);
        assert_eq!(judge(scope, device, &seal, &newer[..1]), refused);
        assert_eq!(judge(scope, show, &seal, &secrets), refused);
        assert_eq!(judge(ListScope { theatre: "rialto", ..scope }, device, &seal, &secrets), refused);
        assert_eq!(judge(ListScope { show: device, ..scope }, device, &seal, &secrets), refused);
        for other in [
            ListSeal { made_at_ms: 0, ..seal.clone() },
            ListSeal { expires_at_ms: i64::MAX, ..seal.clone() },
            ListSeal { content: "00".to_owned(), ..seal.clone() },
            ListSeal { signature: "no hex".to_owned(), ..seal.clone() },
            ListSeal { signature: String::new(), ..seal.clone() },
        ] {
            assert_eq!(judge(scope, device, &other, &secrets), refused, "{other:?}");
        }
    }
}
