//! Checks of personal names and e-mail addresses.

use crate::api::systems::one_line;

/// Maximum length of a name, characters.
pub const MAX_NAME_CHARS: usize = 120;
/// Maximum length of an e-mail address, bytes (RFC 5321, 4.5.3.1.3: a path of 256 with its brackets).
pub const MAX_EMAIL_BYTES: usize = 254;

/// Returns the name without surrounding white space; `None` if it is empty, too long or contains control characters.
/// Every script, direction and emoji is allowed.
#[must_use]
pub fn personal_name(text: &str) -> Option<&str> {
    one_line(text, MAX_NAME_CHARS)
}

/// Maximum length of a domain label, bytes (RFC 1035, 2.3.4).
const MAX_LABEL_BYTES: usize = 63;

/// True if the part after the `@` can be a mail domain: two or more labels of letters, digits and inner hyphens,
/// separated by dots, the last of which is not a number. Letters of all scripts are allowed, as in internationalised
/// domains.
#[must_use]
pub fn has_mail_domain(email: &str) -> bool {
    let Some((_, domain)) = email.rsplit_once('@') else { return false };
    let is_label = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|c| c == '-' || if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() })
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    domain.rsplit_once('.').is_some_and(|(_, last)| !is_number(last)) && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_scripts_are_accepted() {
        for name in ["José Núñez", "ليلى", "山田 花子", "<b>Bobby</b>", "O'Neil 🎬", "Ng"] {
            assert_eq!(personal_name(&format!(" {name}\n")), Some(name));
        }
        assert!(personal_name(&"ß".repeat(MAX_NAME_CHARS)).is_some());
    }

    #[test]
    fn mail_domain_needs_a_dot_and_valid_labels() {
        for valid in
            ["a@example.org", "a@kino.example.co.uk", "josé@correo.es", "a@bücher.example", "a@x-1.example", "a@1.de"]
        {
            assert!(has_mail_domain(valid), "{valid}");
        }
        for bad in [
            "a",
            "a@",
            "a@b",
            "a@b.",
            "a@.b",
            "a@b..c",
            "a@-b.c",
            "a@b-.c",
            "a@b_c.de",
            "a@127.0.0.1",
            "a@[::1]",
            "a@b.c d",
        ] {
            assert!(!has_mail_domain(bad), "{bad}");
        }
        assert!(!has_mail_domain(&format!("a@{}.org", "x".repeat(MAX_LABEL_BYTES + 1))));
    }

    #[test]
    fn invalid_names_are_refused() {
        for name in [
            "",
            "   ",
            "a\r\nBcc: b@example.org",
            "\u{0}",
            "\u{202E}nnA",
            "Ann\u{2066}",
            &"x".repeat(MAX_NAME_CHARS + 1),
        ] {
            assert_eq!(personal_name(name), None, "{name:?}");
        }
    }
}
