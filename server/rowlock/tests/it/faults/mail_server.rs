//! An SMTP server (RFC 5321) of one test that counts mails, and refuses those to some recipients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::injector::{AnswerFate, FaultInjector};

/// Effect of a mail by the start of its `Message-ID`.
const KINDS: [(&[u8], &str); 2] = [(b"Message-ID: <ticket.", "send_ticket"), (b"Message-ID: <notice.", "send_notice")];

#[derive(Clone)]
pub struct MailServer {
    /// For `SMTP_URL`.
    pub url: String,
    taken: Arc<Mutex<Vec<String>>>,
    /// Replies to recipients that are refused.
    refusals: Arc<Mutex<HashMap<String, &'static [u8]>>>,
}

impl MailServer {
    pub async fn open(injector: Arc<FaultInjector>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", listener.local_addr().expect("an address"));
        let mail_server = Self { url, taken: Arc::default(), refusals: Arc::default() };
        let counter = mail_server.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mail_server, injector) = (counter.clone(), Arc::clone(&injector));
                tokio::spawn(async move {
                    // A client that disconnects halfway has sent nothing.
                    let _ = mail_server.serve(client, &injector).await;
                });
            }
        });
        mail_server
    }

    pub fn mails_to(&self, email: &str) -> usize {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().filter(|to| *to == email).count()
    }

    /// Refuses a recipient from now on, with this reply.
    pub fn refuse(&self, email: &str, reply: &'static [u8]) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).insert(email.to_owned(), reply);
    }

    /// Accepts a recipient again.
    pub fn accept(&self, email: &str) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).remove(email);
    }

    fn reply_to_recipient(&self, email: &str) -> &'static [u8] {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.get(email).copied().unwrap_or(b"250 yes\r\n")
    }

    async fn serve(&self, client: TcpStream, injector: &FaultInjector) -> std::io::Result<()> {
        let mut client = BufReader::new(client);
        client.write_all(b"220 post.test\r\n").await?;
        let (mut line, mut to) = (String::new(), String::new());
        loop {
            line.clear();
            if client.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let word = line.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
            let answer: &[u8] = match word.as_str() {
                "RCPT" => {
                    to = line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                    self.reply_to_recipient(&to)
                }
                "DATA" => {
                    client.write_all(b"354 go on\r\n").await?;
                    let effect = read_mail(&mut client).await?;
                    match self.take(&to, effect, injector).await {
                        Some(answer) => answer,
                        None => return Ok(()),
                    }
                }
                "QUIT" => {
                    client.write_all(b"221 bye\r\n").await?;
                    return Ok(());
                }
                _ => b"250 yes\r\n",
            };
            client.write_all(answer).await?;
        }
    }

    /// Accepts a mail and returns the reply; `None` cuts the connection.
    async fn take(&self, to: &str, effect: Option<&'static str>, injector: &FaultInjector) -> Option<&'static [u8]> {
        let effect = effect.expect("unknown kind of mail; add it to KINDS");
        // None for a recipient without a purchase in this test.
        let of_booking: Vec<_> = injector.booking_of_email(to).into_iter().map(|booking| (booking, effect)).collect();
        if of_booking.iter().any(|(booking, effect)| !injector.reaches_service(*booking, effect)) {
            return Some(b"451 try again later\r\n");
        }
        let calling_server = injector.calling_server();
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(to.to_owned());
        if injector.answer(calling_server, &of_booking).await != AnswerFate::Arrives {
            return None;
        }
        Some(b"250 taken\r\n")
    }
}

/// Reads to the line with a single dot. Returns the effect of the mail.
async fn read_mail(client: &mut BufReader<TcpStream>) -> std::io::Result<Option<&'static str>> {
    let (mut line, mut kind) = (Vec::new(), None);
    loop {
        line.clear();
        if client.read_until(b'\n', &mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == b".\r\n" {
            return Ok(kind);
        }
        let kind_of_line = KINDS.iter().find(|(begins, _)| line.starts_with(begins)).map(|(_, effect)| *effect);
        kind = kind.or(kind_of_line);
    }
}
