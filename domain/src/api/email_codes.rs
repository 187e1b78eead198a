//! The JSON of codes by e-mail, which some shows ask for before checkout.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Digits of a code.
pub const CODE_DIGITS: usize = 6;

/// `POST /shows/{show}/email-code`: have a code mailed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EmailCodeRequest {
    /// The address that will be the buyer's.
    pub email: String,
    /// In which language the mail is written, for example `de`; absent or unknown: English.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// A code is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct EmailCodeView {
    /// The address it is mailed to.
    pub email: String,
    /// Until when it can be entered, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// How often one may enter a wrong one.
    pub tries: u32,
}

/// `POST /shows/{show}/email-code/proof`: enter it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EmailProofRequest {
    /// The address it was mailed to.
    pub email: String,
    /// The digits; spaces between them do not matter.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: TypedCode,
}

/// What somebody typed as a code. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypedCode(pub String);

impl std::fmt::Debug for TypedCode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("TypedCode(…)")
    }
}

impl TypedCode {
    /// The six digits, whatever script they are typed in and whatever space is between them; `None` when it is anything
    /// else.
    #[must_use]
    pub fn digits(&self) -> Option<String> {
        let mut digits = String::with_capacity(CODE_DIGITS);
        for typed in self.0.chars().filter(|typed| !typed.is_whitespace()) {
            if digits.len() == CODE_DIGITS {
                return None;
            }
            digits.push(digit(typed)?);
        }
        (digits.len() == CODE_DIGITS).then_some(digits)
    }
}

/// A digit as keyboards of our languages write it.
fn digit(typed: char) -> Option<char> {
    let zero = match typed {
        '0'..='9' => '0',
        '\u{660}'..='\u{669}' => '\u{660}',
        '\u{6F0}'..='\u{6F9}' => '\u{6F0}',
        '\u{966}'..='\u{96F}' => '\u{966}',
        _ => return None,
    };
    char::from_digit(u32::from(typed) - u32::from(zero), 10)
}

/// The address is proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct EmailProofView {
    /// Which.
    pub email: String,
    /// Until when this visitor may check out with it, RFC 3339.
    pub valid_until: String,
    /// The same in milliseconds since 1970.
    pub valid_until_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(typed: &str) -> Option<String> {
        TypedCode(typed.to_owned()).digits()
    }

    #[test]
    fn a_code_is_six_digits_of_any_script_with_any_space() {
        for typed in ["012345", " 012 345\u{a0}", "٠١٢٣٤٥", "०१२३४५", "۰۱۲۳۴۵"] {
            assert_eq!(digits(typed).as_deref(), Some("012345"), "{typed}");
        }
        for typed in ["", "12345", "1234567", "12345a", "-12345", "½12345"] {
            assert_eq!(digits(typed), None, "{typed}");
        }
    }

    #[test]
    fn what_was_typed_is_printed_nowhere() {
        let request = EmailProofRequest { email: "a@example.org".to_owned(), code: TypedCode("123456".to_owned()) };
        assert!(!format!("{request:?}").contains("123456"));
    }
}
