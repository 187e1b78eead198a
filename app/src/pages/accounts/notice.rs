//! What a page says after something was done elsewhere. An address names it; it never says it in words.

use crate::say;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A registration; whether there was an account is not told.
    Registered,
    /// The mail with the link is on its way.
    MailSent,
    /// The address is proven.
    Proven,
    /// The password is another one.
    PasswordChanged,
    /// The same, by a mail.
    PasswordReset,
    /// All sessions are over.
    SignedOutEverywhere,
    /// A page that is for people who are signed in.
    SignInFirst,
}

impl Notice {
    /// As each stands in an address.
    pub const ALL: [(Self, &str); 7] = [
        (Self::Registered, "registered"),
        (Self::MailSent, "mail-sent"),
        (Self::Proven, "proven"),
        (Self::PasswordChanged, "password-changed"),
        (Self::PasswordReset, "password-reset"),
        (Self::SignedOutEverywhere, "signed-out"),
        (Self::SignInFirst, "sign-in-first"),
    ];

    /// The notice of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(notice, _)| notice)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(notice, _)| *notice == self).map_or("", |(_, name)| name)
    }

    /// What it says.
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
    fn notices_are_known_by_their_names_and_no_other_text_is_shown() {
        for (notice, name) in Notice::ALL {
            assert_eq!((Notice::parse(name), notice.as_str()), (Some(notice), name));
        }
        assert_eq!(Notice::parse("<script>"), None);
    }
}
