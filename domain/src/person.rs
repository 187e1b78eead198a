//! How a person is called, as far as that is checked.

use crate::api::systems::one_line;

/// Longest name, characters.
pub const MAX_NAME_CHARS: usize = 120;
/// Longest e-mail address, bytes (RFC 5321, 4.5.3.1.3: a path of 256 with its brackets).
pub const MAX_EMAIL_BYTES: usize = 254;

/// The name with outer white space taken off; `None` when it is empty, too long or has control characters. Every
/// script, direction and emoji is a name.
#[must_use]
pub fn personal_name(text: &str) -> Option<&str> {
    one_line(text, MAX_NAME_CHARS)
}

/// Longest label of a domain, bytes (RFC 1035, 2.3.4).
const MAX_LABEL_BYTES: usize = 63;

/// True if the part behind the `@` can be a domain that mail is sent to: two or more labels of letters, digits and inner
/// hyphens, with dots between them, of which the last is no number. Letters of all scripts: domains may be written in any.
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
    fn names_of_all_scripts_are_names() {
        for name in ["José Núñez", "ليلى", "山田 花子", "<b>Bobby</b>", "O'Neil 🎬", "Ng"] {
            assert_eq!(personal_name(&format!(" {name}\n")), Some(name));
        }
        assert!(personal_name(&"ß".repeat(MAX_NAME_CHARS)).is_some());
    }

    #[test]
    fn an_address_has_a_domain_with_a_dot_and_sane_labels() {
        for good in
            ["a@example.org", "a@kino.example.co.uk", "josé@correo.es", "a@bücher.example", "a@x-1.example", "a@1.de"]
        {
            assert!(has_mail_domain(good), "{good}");
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
    fn what_cannot_be_a_name_is_none() {
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
