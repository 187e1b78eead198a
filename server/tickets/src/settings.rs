//! Settings of mails.

use std::path::PathBuf;

use clap::Args;

/// Settings of mails.
#[derive(Clone, Debug, Args)]
pub struct MailSettings {
    /// Mails are written into this folder…
    #[arg(long, env = "MAILBOX_DIR")]
    pub mailbox_dir: Option<PathBuf>,
    /// …or sent through this server, `smtps://user:password@host`.
    #[arg(long, env = "SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<String>,
    /// Sender of mails.
    #[arg(long, env = "MAIL_FROM", default_value = "Rowlock <tickets@rowlock.example>")]
    pub mail_from: String,
}
