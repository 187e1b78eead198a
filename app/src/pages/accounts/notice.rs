//! Confirmations shown after a redirect. The address contains a name, never the text.

use crate::say;

/// A confirmed action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    SignedOutEverywhere,
    /// The requested page needs a signed-in account.
    SignInFirst,
}

impl Notice {
    /// All notices with their names in addresses.
    pub const ALL: [(Self, &str); 7] = [
        (Self::Registered, "registered"),
        (Self::MailSent, "mail-sent"),
        (Self::Proven, "proven"),
        (Self::PasswordChanged, "password-changed"),
        (Self::PasswordReset, "password-reset"),
        (Self::SignedOutEverywhere, "signed-out"),
        (Self::SignInFirst, "sign-in-first"),
    ];

    /// The notice of a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(notice, _)| notice)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(notice, _)| *notice == self).map_or("", |(_, name)| name)
    }

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

    #[test]
    fn notices_are_parsed_by_name_and_other_texts_are_rejected() {
        for (notice, name) in Notice::ALL {
            assert_eq!((Notice::parse(name), notice.as_str()), (Some(notice), name));
        }
        assert_eq!(Notice::parse("<script>"), None);
    }
}
