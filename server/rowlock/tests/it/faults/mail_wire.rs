//! A mail server of a test's own: takes mails as SMTP has it (RFC 5321), and counts them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::wires::{Answer, Wires};

/// What a mail is, by how its `Message-ID` begins.
const KINDS: [(&[u8], &str); 2] = [(b"Message-ID: <ticket.", "send_ticket"), (b"Message-ID: <notice.", "send_notice")];

/// Takes mails.
#[derive(Clone)]
pub struct Post {
    /// For `SMTP_URL`.
    pub url: String,
    /// Who got mail, in order of arrival.
    taken: Arc<Mutex<Vec<String>>>,
}

impl Post {
    pub async fn open(wires: Arc<Wires>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", listener.local_addr().expect("an address"));
        let post = Self { url, taken: Arc::default() };
        let counter = post.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (post, wires) = (counter.clone(), Arc::clone(&wires));
                tokio::spawn(async move {
                    // A client that goes in the middle has not sent anything.
                    let _ = post.serve(client, &wires).await;
                });
            }
        });
        post
    }

    /// Mails this address got.
    pub fn mails_to(&self, email: &str) -> usize {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().filter(|to| *to == email).count()
    }

    async fn serve(&self, client: TcpStream, wires: &Wires) -> std::io::Result<()> {
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
                    b"250 yes\r\n"
                }
                "DATA" => {
                    client.write_all(b"354 go on\r\n").await?;
                    let effect = read_mail(&mut client).await?;
                    match self.take(&to, effect, wires).await {
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

    /// A mail is there; `None`: the connection is cut.
    async fn take(&self, to: &str, effect: Option<&'static str>, wires: &Wires) -> Option<&'static [u8]> {
        let effect = effect.expect("a mail of a kind that is known; add it to KINDS");
        // Of somebody whose purchase is not played here.
        let of_booking: Vec<_> = wires.booking_of_email(to).into_iter().map(|booking| (booking, effect)).collect();
        if of_booking.iter().any(|(booking, effect)| !wires.lets_through(*booking, effect)) {
            return Some(b"451 try again later\r\n");
        }
        let asker = wires.asker();
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(to.to_owned());
        if wires.answer(asker, &of_booking).await != Answer::Arrives {
            return None;
        }
        Some(b"250 taken\r\n")
    }
}

/// Up to the line that is a dot: which effect the mail is.
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
        let known = KINDS.iter().find(|(begins, _)| line.starts_with(begins)).map(|(_, effect)| *effect);
        kind = kind.or(known);
    }
}
