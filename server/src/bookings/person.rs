//! The one validator of names and addresses, of accounts as well.

use domain::api::Person;

use crate::tickets::is_address;
use crate::web::{Code, Problem};

/// Longest name, characters.
pub(super) const MAX_NAME_CHARS: usize = 120;
/// Longest address, bytes (RFC 5321, 4.5.3.1.3: a path of 256 with its brackets).
pub(super) const MAX_EMAIL_BYTES: usize = 254;

/// The person with outer white space taken off.
///
/// # Errors
/// 400 when the name is empty, too long or has control characters, or the address cannot be one.
/// Every other script, direction and emoji is a name.
pub fn check(who: &str, person: &Person) -> Result<(String, String), Problem> {
    let refuse = |what: &str| Problem::new(Code::PersonInvalid, format!("{what} of the {who} {}", "cannot be used."));
    let name = person.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(refuse("The name"));
    }
    let email = person.email.trim();
    if email.len() > MAX_EMAIL_BYTES || !is_address(email) {
        return Err(refuse("The e-mail address"));
    }
    Ok((name.to_owned(), email.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, email: &str) -> Person {
        Person { name: name.to_owned(), email: email.to_owned() }
    }

    #[test]
    fn names_of_all_scripts_are_names() {
        for name in ["José Núñez", "ليلى", "山田 花子", "<b>Bobby</b>", "O'Neil 🎬", "Ng"] {
            assert!(check("buyer", &person(name, "a@example.org")).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_a_person_is_refused() {
        let long = "x".repeat(121);
        for name in ["", "   ", "a\r\nBcc: b@example.org", "\u{0}", &long] {
            assert!(check("buyer", &person(name, "a@example.org")).is_err(), "{name:?}");
        }
        for email in ["", "a", "a@", "@b", "a b@example.org", "a@example.org\r\nBcc: c@example.org"] {
            assert!(check("buyer", &person("Ann", email)).is_err(), "{email:?}");
        }
    }
}
