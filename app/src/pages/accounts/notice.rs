//! Confirmations shown after a redirect. The address contains a name, never the text.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::say;

/// A confirmed action. Addresses contain its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Notice {
    /// A registration. The same whether or not the account existed.
    Registered,
    /// The mail with the link was sent.
    MailSent,
    /// The address was confirmed.
    Proven,
    /// The password was changed.
    PasswordChanged,
    /// The password was reset by mail.
    PasswordReset,
    /// All sessions were ended.
    #[strum(serialize = "signed-out")]
    SignedOutEverywhere,
    /// The requested page needs a signed-in account.
    SignInFirst,
}

impl Notice {
    /// Its text.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Registered => say!("account.notice_registered"),
            Self::MailSent => say!("account.notice_mail_sent"),
            Self::Proven => say!("account.notice_proven"),
            Self::PasswordChanged => say!("account.notice_password_changed"),
            Self::PasswordReset => say!("account.notice_password_reset"),
            Self::SignedOutEverywhere => say!("account.notice_signed_out"),
            Self::SignInFirst => say!("account.notice_sign_in_first"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::VariantName;

    #[test]
    fn notices_are_parsed_by_name_and_other_texts_are_rejected() {
        for &notice in Notice::VARIANTS {
            assert_eq!(notice.as_str().parse(), Ok(notice));
        }
        assert!("<script>".parse::<Notice>().is_err());
    }
}
