//! JSON of the e-mail codes that some shows require before checkout.

use serde::{Deserialize, Serialize};

/// Number of digits in a code.
pub const CODE_DIGITS: usize = 6;

/// `POST /shows/{show}/email-code`: mails a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EmailCodeRequest {
    /// The buyer's address.
    pub email: String,
    /// Language of the mail, for example `de`; absent or unknown: English.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// Answer to a request for a code: the mail is queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EmailCodeView {
    /// The recipient's address.
    pub email: String,
    /// Expiry of the code, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// Number of wrong codes allowed.
    pub tries: u32,
}

/// `POST /shows/{show}/email-code/proof`: verifies a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EmailProofRequest {
    /// The recipient's address.
    pub email: String,
    /// The digits; spaces are ignored.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: TypedCode,
}

/// A code as typed. Its `Debug` output hides the digits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypedCode(pub String);

impl std::fmt::Debug for TypedCode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("TypedCode(…)")
    }
}

impl TypedCode {
    /// Returns the six digits as ASCII, in any supported script and with any spaces; `None` for any other input.
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

/// Converts a digit of any script that the keyboards of supported languages use to ASCII.
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

/// Proof that the visitor can read mail at the address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EmailProofView {
    /// The verified address.
    pub email: String,
    /// End of validity for checkout, RFC 3339.
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
    fn code_is_six_digits_in_any_script_with_any_spaces() {
        for typed in ["012345", " 012 345\u{a0}", "٠١٢٣٤٥", "०१२३४५", "۰۱۲۳۴۵"] {
            assert_eq!(digits(typed).as_deref(), Some("012345"), "{typed}");
        }
        for typed in ["", "12345", "1234567", "12345a", "-12345", "½12345"] {
            assert_eq!(digits(typed), None, "{typed}");
        }
    }

    #[test]
    fn debug_output_hides_the_code() {
        let request = EmailProofRequest { email: "a@example.org".to_owned(), code: TypedCode("123456".to_owned()) };
        assert!(!format!("{request:?}").contains("123456"));
    }
}
