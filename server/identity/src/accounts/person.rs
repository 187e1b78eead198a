//! Validates account holders, buyers and waiting customers; the only validator. `domain::person` defines names.

use domain::api::Person;
use domain::person::{MAX_EMAIL_BYTES, personal_name};

use http::{ApiResult, Code, Problem};
use tickets::is_address;

/// Returns the trimmed name and e-mail address of a person.
///
/// # Errors
/// 400 when either is invalid.
pub fn check(who: &str, person: &Person) -> ApiResult<(String, String)> {
    let refuse = |what: &str| Problem::new(Code::PersonInvalid, format!("{what} of the {who} cannot be used."));
    let name = personal_name(&person.name).ok_or_else(|| refuse("The name"))?;
    let email = address(&person.email).ok_or_else(|| refuse("The e-mail address"))?;
    Ok((name.to_owned(), email.to_owned()))
}

/// Returns a trimmed e-mail address.
///
/// # Errors
/// 400 when it is invalid.
pub fn email_of(text: &str) -> ApiResult<&str> {
    address(text).ok_or_else(|| Problem::new(Code::PersonInvalid, "The e-mail address cannot be used."))
}

/// As [`email_of`]; `None` for an invalid address.
pub(super) fn address(text: &str) -> Option<&str> {
    let email = text.trim();
    (email.len() <= MAX_EMAIL_BYTES && is_address(email)).then_some(email)
}

/// Normalises an address for lookups and rate limits: trimmed, ASCII letters in lower case, as in SQL.
#[must_use]
pub fn normalise_address(email: &str) -> String {
    email.trim().to_ascii_lowercase()
}

/// Returns the mailbox of an address for seat limits: [`normalise_address`], without a tag after a plus. Equals `mailbox` in SQL
/// (`migrations/0004_identity.sql`).
#[must_use]
pub fn mailbox(email: &str) -> String {
    let email = normalise_address(email);
    let untagged = email.rsplit_once('@').and_then(|(local, domain)| {
        let (name, _tag) = local.split_once('+')?;
        (!name.is_empty()).then(|| format!("{name}@{domain}"))
    });
    untagged.unwrap_or(email)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_white_space_is_trimmed() {
        let person = Person { name: " Ann\n".to_owned(), email: " ann@example.org ".to_owned() };
        assert_eq!(check("buyer", &person).expect("a person"), ("Ann".to_owned(), "ann@example.org".to_owned()));
    }

    #[test]
    fn an_address_ignores_ascii_case_only() {
        assert_eq!(normalise_address(" Ann@Example.ORG "), normalise_address("ann@example.org"));
        assert_ne!(
            normalise_address("\u{212A}im@example.org"),
            normalise_address("kim@example.org"),
            "the Kelvin sign is no k"
        );
    }

    #[test]
    fn a_mailbox_ignores_tags_and_case() {
        for same in ["ann@example.org", "Ann@Example.org", "ann+cinema@example.org", "ann+a+b@example.org"] {
            assert_eq!(mailbox(same), "ann@example.org", "{same}");
        }
        for other in ["an.n@example.org", "ann@example.com", "+ann@example.org", "anna@example.org"] {
            assert_eq!(mailbox(other), other, "another mailbox, or nothing is known of it");
        }
    }

    #[test]
    fn an_invalid_name_or_address_is_refused_with_its_field() {
        let refused = |name: &str, email: &str| {
            let problem =
                check("buyer", &Person { name: name.to_owned(), email: email.to_owned() }).expect_err("refused");
            assert_eq!(problem.code(), Code::PersonInvalid);
            problem.detail().to_owned()
        };
        assert_eq!(refused(" ", "a@example.org"), "The name of the buyer cannot be used.");
        let long = format!("{}@example.org", "x".repeat(MAX_EMAIL_BYTES));
        for email in ["", "a", "a@", "@b", "a b@example.org", "a@example.org\r\nBcc: c@example.org", &long] {
            assert_eq!(refused("Ann", email), "The e-mail address of the buyer cannot be used.", "{email:?}");
            assert!(email_of(email).is_err(), "{email:?}");
        }
    }
}
