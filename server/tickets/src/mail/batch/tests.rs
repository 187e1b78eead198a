//! Failures of one mail of many, and a mail server that stops answering.

use std::path::Path;
use std::time::Duration;

use domain::time::Timestamp;
use lettre::{AsyncSmtpTransport, Tokio1Executor};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::super::tests::{from, holder, mail};
use super::*;

/// A batch of the booking with that number, with a deadline far away.
fn batch(number: u128, mails: Vec<TicketMail>) -> MailBatch {
    let soon = Instant::now() + Duration::from_secs(60);
    let booking = Uuid::from_u128(number);
    let mails = mails.into_iter().map(|mail| TicketMail { booking, ..mail }).collect();
    MailBatch { booking, mails, begin_by: soon, until: soon }
}

fn holder_mail() -> TicketMail {
    let links = vec!["https://rowlock.example/tickets/A".to_owned()];
    TicketMail { addressee: holder("Ana", links), to_email: "luis@example.org".to_owned(), ..mail() }
}

/// A mail to an invalid address.
fn unaddressable_mail() -> TicketMail {
    TicketMail { to_email: "no-address".to_owned(), ..mail() }
}

/// Sends batches; returns their results in order.
async fn send_all(mailer: &Mailer, batches: Vec<MailBatch>) -> Vec<(Uuid, Result<(), MailError>)> {
    let outcomes = send_and_count(mailer, batches).await.into_iter();
    outcomes.map(|(booking, sent)| (booking, sent.map_err(|failure| failure.cause))).collect()
}

/// As [`send_all`], with the numbers of mails sent before a failure.
async fn send_and_count(mailer: &Mailer, batches: Vec<MailBatch>) -> Vec<(Uuid, Result<(), MailBatchFailure>)> {
    let mut outcomes = Vec::new();
    for composed in mailer.compose(batches).await.expect("composed") {
        outcomes.push((composed.booking, mailer.send_composed(composed).await));
    }
    outcomes
}

/// Files of mails, in order.
fn mails_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry"));
    let files = entries.filter(|entry| entry.file_type().expect("a type").is_file());
    let mut names: Vec<String> = files.map(|entry| entry.file_name().into_string().expect("a name")).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

#[tokio::test]
async fn a_mail_that_fails_does_not_affect_the_others() {
    let folder = std::env::temp_dir().join(format!("rowlock-mails-{}", platform::ids::new_id()));
    let file = |number: u128| format!("{}.eml", Uuid::from_u128(number));
    // A folder in the place of the third mail, which no file can replace.
    std::fs::create_dir_all(folder.join(file(3))).expect("made");
    let mailer = Mailer::into_folder(from(), &folder);
    let outcomes = send_all(
        &mailer,
        vec![
            batch(1, vec![unaddressable_mail(), holder_mail()]),
            // No mail can have this date: writing it panics.
            batch(2, vec![TicketMail { at: Timestamp(i64::MAX), ..mail() }]),
            batch(3, vec![mail()]),
            batch(4, vec![mail(), holder_mail()]),
            batch(5, vec![mail(), TicketMail { to_email: "no-address".to_owned(), ..holder_mail() }]),
            batch(6, Vec::new()),
        ],
    )
    .await;
    let bookings: Vec<Uuid> = outcomes.iter().map(|(booking, _)| *booking).collect();
    assert_eq!(bookings, (1..=6).map(Uuid::from_u128).collect::<Vec<_>>());
    let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    assert!(
        matches!(
            outcomes[..],
            [
                Err(MailError::Unsendable(_)),
                Err(MailError::Panicked),
                Err(MailError::NotDelivered(_)),
                Ok(()),
                Err(MailError::Unsendable(_)),
                Ok(()),
            ]
        ),
        "{outcomes:?}"
    );
    let friends = format!("{}.holder.eml", Uuid::from_u128(4));
    assert_eq!(mails_in(&folder), [file(4), friends, file(5)], "a failed mail skips those after it");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[tokio::test]
async fn a_batch_past_its_deadline_is_not_started() {
    let folder = std::env::temp_dir().join(format!("rowlock-mails-{}", platform::ids::new_id()));
    let mailer = Mailer::into_folder(from(), &folder);
    let stale = MailBatch { begin_by: Instant::now(), ..batch(1, vec![mail()]) };
    let outcomes = send_all(&mailer, vec![stale, batch(2, vec![mail()])]).await;
    assert!(matches!(outcomes[..], [(_, Err(MailError::TooLate)), (_, Ok(()))]), "{outcomes:?}");
    assert_eq!(mails_in(&folder), [format!("{}.eml", Uuid::from_u128(2))]);
    std::fs::remove_dir_all(folder).expect("removed");

    let (url, _heard) = start_mail_server().await;
    let mailer = by_smtp(&url);
    let mut composed = mailer.compose(vec![batch(3, vec![mail()])]).await.expect("composed");
    let composed = ComposedMails { begin_by: Instant::now(), ..composed.remove(0) };
    let sent = mailer.send_composed(composed).await;
    let is_late = matches!(sent, Err(MailBatchFailure { sent: 0, cause: MailError::TooLate }));
    assert!(is_late, "composed in time, but sent too late: {sent:?}");
}

#[derive(Debug, PartialEq, Eq)]
enum MailServerEvent {
    /// A whole mail: its recipient.
    Mail(String),
    /// The server stops answering, in the middle of a mail…
    FellSilent,
    /// …and the client closed the connection…
    Closed,
    /// …or reused it.
    Reused,
}

/// Starts a mail server that stops answering in the first mail, and accepts all others.
async fn start_mail_server() -> (String, UnboundedReceiver<MailServerEvent>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("smtp://{}", listener.local_addr().expect("an address"));
    let (events, received) = unbounded_channel();
    tokio::spawn(async move {
        let mut falls_silent = true;
        while let Ok((client, _)) = listener.accept().await {
            // A client that disconnects in the middle of a mail has not sent it.
            tokio::spawn(serve(client, falls_silent, events.clone()));
            falls_silent = false;
        }
    });
    (url, received)
}

async fn serve(client: TcpStream, falls_silent: bool, events: UnboundedSender<MailServerEvent>) -> std::io::Result<()> {
    // The test may have ended.
    let record = |what| drop(events.send(what));
    let mut client = BufReader::new(client);
    client.write_all(b"220 post.test\r\n").await?;
    let (mut line, mut to) = (String::new(), String::new());
    loop {
        line.clear();
        if client.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let word = line.split_whitespace().next().unwrap_or_default().to_owned();
        let answer: &[u8] = match word.as_str() {
            "RCPT" => {
                to = line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                answer_to_recipient(&to)
            }
            "DATA" if falls_silent => {
                record(MailServerEvent::FellSilent);
                let more = client.read_line(&mut line).await;
                record(if matches!(more, Ok(1..)) { MailServerEvent::Reused } else { MailServerEvent::Closed });
                return Ok(());
            }
            "DATA" => {
                client.write_all(b"354 go on\r\n").await?;
                while line != ".\r\n" {
                    line.clear();
                    if client.read_line(&mut line).await? == 0 {
                        return Ok(());
                    }
                }
                record(MailServerEvent::Mail(to.clone()));
                b"250 taken\r\n"
            }
            "QUIT" => b"221 bye\r\n",
            _ => b"250 yes\r\n",
        };
        client.write_all(answer).await?;
    }
}

/// The mail server's answer to a recipient: that of two addresses is a refusal.
fn answer_to_recipient(to: &str) -> &'static [u8] {
    match to {
        "gone@example.org" => b"550 no such mailbox\r\n",
        "full@example.org" => b"452 mailbox full\r\n",
        _ => b"250 yes\r\n",
    }
}

fn by_smtp(url: &str) -> Mailer {
    let smtp = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).expect("an address of a server").build();
    Mailer { from: from(), transport: Transport::Smtp(smtp) }
}

#[tokio::test]
async fn the_connection_of_a_cancelled_mail_is_not_reused() {
    let (url, mut received) = start_mail_server().await;
    let (mailer, cut_off) = (by_smtp(&url), mail());
    tokio::select! {
        sent = mailer.send_ticket(&cut_off) => panic!("the server does not answer: {sent:?}"),
        seen = received.recv() => assert_eq!(seen, Some(MailServerEvent::FellSilent)),
    }
    // The mail was cancelled in the middle of a command. It does not affect the next ones.
    let outcomes = send_all(&mailer, vec![batch(1, vec![mail(), holder_mail()])]).await;
    assert!(matches!(outcomes[..], [(_, Ok(()))]), "{outcomes:?}");
    // Pooled connections would be closed here, with a QUIT.
    drop(mailer);
    let mut seen =
        [received.recv().await, received.recv().await, received.recv().await].map(|what| what.expect("an event"));
    seen.sort_by_key(|what| *what == MailServerEvent::Closed);
    let to = |email: &str| MailServerEvent::Mail(email.to_owned());
    assert_eq!(seen, [to("ana@example.org"), to("luis@example.org"), MailServerEvent::Closed]);
}

#[tokio::test]
async fn a_permanent_refusal_of_a_mailbox_differs_from_a_temporary_one() {
    let (url, _heard) = start_mail_server().await;
    let mailer = by_smtp(&url);
    let to = |email: &str| TicketMail { to_email: email.to_owned(), ..mail() };
    let (gone, full) = (to("gone@example.org"), to("full@example.org"));
    let batches = vec![batch(1, vec![gone.clone()]), batch(2, vec![full.clone()])];
    let mut outcomes: Vec<_> = send_all(&mailer, batches).await.into_iter().map(|(_, outcome)| outcome).collect();
    outcomes.extend([mailer.send_ticket(&gone).await, mailer.send_ticket(&full).await]);
    assert!(
        matches!(
            outcomes[..],
            [
                Err(MailError::MailboxRefused(_)),
                Err(MailError::MailboxDeferred(_)),
                Err(MailError::MailboxRefused(_)),
                Err(MailError::MailboxDeferred(_)),
            ]
        ),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_silent_server_is_waited_for_until_the_deadline() {
    let (url, _heard) = start_mail_server().await;
    let mailer = by_smtp(&url);
    let mut composed = mailer.compose(vec![batch(1, vec![mail()])]).await.expect("composed");
    let composed = ComposedMails { until: Instant::now(), ..composed.remove(0) };
    let sent = mailer.send_composed(composed).await;
    assert!(matches!(sent, Err(MailBatchFailure { sent: 0, cause: MailError::TooLate })), "{sent:?}");
}

#[tokio::test]
async fn a_failure_says_how_many_mails_were_handed_over_before_it() {
    let friend = |email: &str| TicketMail { to_email: email.to_owned(), ..holder_mail() };
    let batches = || {
        vec![
            batch(1, vec![unaddressable_mail(), holder_mail()]),
            batch(2, vec![mail(), friend("gone@example.org")]),
            batch(3, vec![mail(), friend("full@example.org")]),
            batch(4, vec![mail(), friend("no-address")]),
        ]
    };
    let counts = |outcomes: Vec<(Uuid, Result<(), MailBatchFailure>)>| {
        let failures = outcomes.into_iter().filter_map(|(_, outcome)| outcome.err());
        failures.map(|failure| (failure.sent, failure.cause.is_undeliverable())).collect::<Vec<_>>()
    };
    let (url, _heard) = start_mail_server().await;
    // The first connection is the one on which the server stops answering.
    drop(TcpStream::connect(url.trim_start_matches("smtp://")).await.expect("connected"));
    let by_mail_server = counts(send_and_count(&by_smtp(&url), batches()).await);
    assert_eq!(by_mail_server, [(0, true), (1, true), (1, false), (1, true)]);

    let folder = std::env::temp_dir().join(format!("rowlock-mails-{}", platform::ids::new_id()));
    let by_folder = counts(send_and_count(&Mailer::into_folder(from(), &folder), batches()).await);
    assert_eq!(by_folder, [(0, true), (1, true)], "the folder takes mails to every address");
    std::fs::remove_dir_all(folder).expect("removed");
}
