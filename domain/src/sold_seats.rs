//! The public list of the sold seats of a show, in which a buyer finds that a seat was sold once, for their booking.
//!
//! The list is text with a line for each sold seat, in ascending seat number: label, tab, digest, line break. A label
//! has no control characters, which [`crate::layout::import`] refuses. `docs/api.md` describes how to verify the list
//! without this code, docs/decisions/0083 what it proves.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// First line of the text whose digest is in the list.
const PURPOSE: &str = "rowlock sold seat";
/// Length of a digest, bytes. Half of it would be too short: the author of two lists could give both the same digest.
const DIGEST_BYTES: usize = 16;

/// The listing of a seat of a booking, from the expected case to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeatListing {
    /// Once, with the digest of this booking.
    SoldOnce,
    /// Not at all.
    NotListed,
    /// Once, with another digest.
    ListedForAnother,
    /// More than once.
    ListedTwice,
}

/// Returns the digest of a sold seat. Only someone who knows the booking's id, which cannot be guessed, can compute it.
#[must_use]
pub fn sale_digest(show: Uuid, label: &str, booking: Uuid) -> String {
    // Unambiguous whatever the label: the ids around it have a fixed length.
    digest_of(&format!("{PURPOSE}\n{show}\n{label}\n{booking}"))
}

/// Returns the digest of a whole list. People who read the same list have the same one.
#[must_use]
pub fn list_digest(list: &str) -> String {
    digest_of(list)
}

/// Appends the line of a sold seat.
pub fn push_line(list: &mut String, show: Uuid, label: &str, booking: Uuid) {
    for part in [label, "\t", &sale_digest(show, label, booking), "\n"] {
        list.push_str(part);
    }
}

/// Looks the seats of a booking up by their labels. `None` if the text is not a list, or a list that was cut off.
#[must_use]
pub fn find_seats(list: &str, show: Uuid, booking: Uuid, labels: &[&str]) -> Option<Vec<SeatListing>> {
    if !list.is_empty() && !list.ends_with('\n') {
        return None;
    }
    let digests: Vec<String> = labels.iter().map(|label| sale_digest(show, label, booking)).collect();
    let mut found = vec![SeatListing::NotListed; labels.len()];
    for line in list.split_terminator('\n') {
        let (label, digest) = line.rsplit_once('\t').filter(|(_, digest)| is_digest(digest))?;
        let Some(at) = labels.iter().position(|own| *own == label) else { continue };
        found[at] = match found[at] {
            SeatListing::NotListed if digest == digests[at] => SeatListing::SoldOnce,
            SeatListing::NotListed => SeatListing::ListedForAnother,
            _ => SeatListing::ListedTwice,
        };
    }
    Some(found)
}

/// The first bytes of the SHA-256, in lower-case hexadecimal.
fn digest_of(text: &str) -> String {
    let mut digits = String::with_capacity(2 * DIGEST_BYTES);
    for byte in &Sha256::digest(text.as_bytes())[..DIGEST_BYTES] {
        for half in [byte >> 4, byte & 0xf] {
            digits.push(char::from(b"0123456789abcdef"[usize::from(half)]));
        }
    }
    digits
}

fn is_digest(text: &str) -> bool {
    text.len() == 2 * DIGEST_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOW: &str = "6f1c2c1e-8f6a-4c3a-9a52-0d5b8a1d7e10";
    const BOOKING: &str = "019a9c40-5f00-7a3b-8c21-4e9d70b6f5a2";
    /// `printf 'rowlock sold seat\n%s\n%s\n%s' SHOW C7 BOOKING | sha256sum | cut -c 1-32`.
    const C7: &str = "5524b0ea94c4b92e729409cabe377fc9";
    const C8: &str = "0f60b4941ebd712b08469725d3a4f3b8";
    /// `sha256sum` of the list of both.
    const LIST: &str = "4e492670709ebee2daedab24f642c097";

    fn id(text: &str) -> Uuid {
        Uuid::parse_str(text).expect("an id")
    }

    fn list() -> String {
        let mut list = String::new();
        for label in ["C7", "C8"] {
            push_line(&mut list, id(SHOW), label, id(BOOKING));
        }
        list
    }

    fn find(list: &str, labels: &[&str]) -> Option<Vec<SeatListing>> {
        find_seats(list, id(SHOW), id(BOOKING), labels)
    }

    #[test]
    fn digests_are_those_of_sha256sum_and_of_the_document() {
        assert_eq!(list(), format!("C7\t{C7}\nC8\t{C8}\n"));
        assert_eq!(list_digest(&list()), LIST);
        let documented = include_str!("../../docs/api.md");
        for part in [SHOW, BOOKING, PURPOSE, C8] {
            assert!(documented.contains(part), "docs/api.md lacks {part}");
        }
    }

    #[test]
    fn a_digest_differs_for_another_show_seat_and_booking() {
        let other = Uuid::from_u128(7);
        for digest in [
            sale_digest(other, "C7", id(BOOKING)),
            sale_digest(id(SHOW), "C7", other),
            sale_digest(id(SHOW), "C8", id(BOOKING)),
        ] {
            assert!(is_digest(&digest) && digest != C7, "{digest}");
        }
    }

    #[test]
    fn each_seat_is_found_once_for_another_twice_or_not_at_all() {
        use SeatListing::{ListedForAnother, ListedTwice, NotListed, SoldOnce};
        assert_eq!(find(&list(), &["C8", "C7"]), Some(vec![SoldOnce, SoldOnce]));
        assert_eq!(find("", &["C7"]), Some(vec![NotListed]), "nothing is sold");
        assert_eq!(find(&list(), &["C", "C70", "c7"]), Some(vec![NotListed; 3]), "labels are compared as a whole");
        let for_another = list().replace(C7, C8);
        assert_eq!(find(&for_another, &["C7", "C8"]), Some(vec![ListedForAnother, SoldOnce]));
        for twice in [list() + &list(), for_another + &list()] {
            assert_eq!(find(&twice, &["C7"]), Some(vec![ListedTwice]), "{twice}");
        }
    }

    #[test]
    fn other_texts_and_lists_that_were_cut_off_are_refused() {
        let whole = list();
        for text in [
            "<html><body>Sign in to this network</body></html>\n",
            "\n",
            "C7\n",
            "C7\tabc\n",
            &whole.to_uppercase(),
            &whole.replace('\t', " "),
            &whole[..whole.len() - 1],
            &whole[..whole.len() - 5],
        ] {
            assert_eq!(find(text, &["C7"]), None, "{text:?}");
        }
    }

    #[test]
    fn an_unproven_seat_is_worse_than_a_proven_one_and_a_double_sale_is_the_worst() {
        use SeatListing::{ListedForAnother, ListedTwice, NotListed, SoldOnce};
        assert!([SoldOnce, NotListed, ListedForAnother, ListedTwice].is_sorted());
    }
}
