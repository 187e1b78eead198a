//! The words of the pages of accounts, in one place.

pub const SIGN_IN: &str = "Sign in";
pub const SIGN_OUT: &str = "Sign out";
pub const SIGN_OUT_EVERYWHERE: &str = "Sign out everywhere";
pub const SIGN_OUT_EVERYWHERE_HINT: &str = "Every browser and every program that is signed in to your account.";
pub const REGISTER: &str = "Create an account";
pub const REGISTER_LEAD: &str = "Your bookings in one place, on every device.";
pub const NEW_HERE: &str = "New here?";
pub const KNOWN_HERE: &str = "You have an account?";
pub const FORGOTTEN: &str = "Forgotten your password?";
pub const NAME: &str = "Name";
pub const EMAIL: &str = "E-mail";
pub const PASSWORD: &str = "Password";
pub const CURRENT_PASSWORD: &str = "Password as it is";
pub const NEW_PASSWORD: &str = "New password";
pub const PASSWORD_HINT: &str = "At least 10 characters; a few words are easier to remember than signs.";
pub const CHANGE_PASSWORD: &str = "Change the password";
pub const ACCOUNT: &str = "Your account";
pub const BOOKINGS: &str = "My bookings";
pub const NO_BOOKINGS: &str = "Nothing yet. What you buy while you are signed in is kept here.";
pub const FIND_A_SHOW: &str = "Find a show";
pub const OLDER: &str = "Older bookings";
pub const SECURITY: &str = "Password and sign-in";
pub const PROVE_TITLE: &str = "Confirm your address";
pub const PROVE_LEAD: &str = "We have sent you a mail with a link. Open it in this browser, and what you bought with this address as a guest joins your account.";
pub const PROVE_AGAIN: &str = "Send the mail again";
pub const PROVE_BUTTON: &str = "Yes, this is my address";
pub const RESET: &str = "A new password";
pub const RESET_LEAD: &str =
    "Tell us your address. If it has an account, a link to choose a new password is on its way.";
pub const RESET_SEND: &str = "Send the mail";
pub const RESET_CHOOSE: &str = "Choose a new password. Whoever is signed in to your account has to sign in again.";
pub const RESET_SET: &str = "Set the password";
pub const READ_MAIL: &str = "Look into your mail";
pub const READ_MAIL_LEAD: &str =
    "If the address has an account, the mail is there within a minute. The link in it works once, for an hour.";
pub const WORKS_AT: &str = "You work at";

/// What a page says after something was done.
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
    /// As it stands in an address.
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
    pub const fn words(self) -> &'static str {
        match self {
            Self::Registered => "Thank you. We have sent a mail to that address; sign in with the password you chose.",
            Self::MailSent => "The mail is on its way.",
            Self::Proven => "Your address is confirmed. What you bought with it as a guest is here now.",
            Self::PasswordChanged => "Your password was changed. Everywhere else you have to sign in again.",
            Self::PasswordReset => "Your password was changed. Sign in with the new one.",
            Self::SignedOutEverywhere => "You are signed out everywhere.",
            Self::SignInFirst => "Please sign in first; then it goes on where you were.",
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
