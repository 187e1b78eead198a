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
    fn what_cannot_be_a_name_is_none() {
        for name in ["", "   ", "a\r\nBcc: b@example.org", "\u{0}", &"x".repeat(MAX_NAME_CHARS + 1)] {
            assert_eq!(personal_name(name), None, "{name:?}");
        }
    }
}
