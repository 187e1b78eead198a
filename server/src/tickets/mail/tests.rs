//! What mails say, to whom, and what strangers' names cannot do to them.

use super::*;
use domain::money::Currency;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

fn mail() -> TicketMail {
    TicketMail {
        addressee: Addressee::Buyer {
            total: Money::new(2500, Currency::parse("EUR").expect("a code")),
            ticket_url: "https://rowlock.example/bookings/7/ticket".to_owned(),
        },
        booking: Uuid::from_u128(7),
        reference: "K7QM-2XPA".to_owned(),
        to_name: "Ana Pérez".to_owned(),
        to_email: "ana@example.org".to_owned(),
        holder_name: "Luís".to_owned(),
        film: "The Long Row".to_owned(),
        place: "Rialto, Screen 2".to_owned(),
        starts: "Saturday 21 November 2026, 20:15".to_owned(),
        seats: vec![("C7".to_owned(), "Gold".to_owned()), ("C8".to_owned(), "Gold".to_owned())],
        at: Timestamp(1_795_000_000_000),
    }
}

fn from() -> Mailbox {
    "Rowlock <tickets@rowlock.example>".parse().expect("an address")
}

fn headers(mail: &TicketMail) -> String {
    let message = String::from_utf8(write(&from(), mail).expect("writable").formatted()).expect("ASCII");
    let (headers, _) = message.split_once("\r\n\r\n").expect("headers end");
    headers.replace("\r\n ", " ")
}

#[test]
fn a_ticket_mail_says_what_where_when_and_how_to_open_it() {
    insta::assert_snapshot!(as_text(&mail()), @r"
    The Long Row
    Saturday 21 November 2026, 20:15
    Rialto, Screen 2

      C7  (Gold)
      C8  (Gold)

    For Luís
    Paid €25.00
    Booking K7QM-2XPA

    Your tickets, to show at the door:
    https://rowlock.example/bookings/7/ticket
    ");
    let headers = headers(&mail());
    assert!(headers.contains("Subject: Your tickets C7, C8: The Long Row"), "{headers}");
    assert!(headers.contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007@rowlock.example>"));
}

#[test]
fn a_friend_gets_each_ticket_and_not_its_price() {
    let link = |code: &str| format!("https://rowlock.example/tickets/{code}");
    let mail = TicketMail {
        addressee: Addressee::Holder { from: "Ana Pérez".to_owned(), links: vec![link("A"), link("B")] },
        to_name: "Luís".to_owned(),
        to_email: "luis@example.org".to_owned(),
        ..mail()
    };
    insta::assert_snapshot!(as_text(&mail), @r"
    The Long Row
    Saturday 21 November 2026, 20:15
    Rialto, Screen 2

      C7  (Gold)
      https://rowlock.example/tickets/A
      C8  (Gold)
      https://rowlock.example/tickets/B

    For Luís, from Ana Pérez
    Booking K7QM-2XPA

    Each address is a ticket, to show at the door.
    ");
    let html = as_html(&mail);
    assert!(!html.contains("25.00") && html.matches("<a ").count() == 2, "{html}");
    assert!(headers(&mail).contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007.holder@"));
}

#[test]
fn a_name_with_line_ends_adds_no_header() {
    let hostile = "Ana\r\nBcc: everyone@example.org\u{2028}X-Evil: 1";
    let headers = headers(&TicketMail { to_name: hostile.to_owned(), film: hostile.to_owned(), ..mail() });
    for line in headers.lines() {
        assert!(!line.starts_with("Bcc") && !line.starts_with("X-Evil"), "{headers}");
    }
    assert!(!as_text(&TicketMail { holder_name: hostile.to_owned(), ..mail() }).contains("\nBcc"));
}

#[test]
fn a_name_with_tags_stays_text() {
    let hostile = r#"<script>alert(1)</script><a href="https://evil.example">'click'</a>"#;
    let html = as_html(&TicketMail {
        holder_name: hostile.to_owned(),
        film: hostile.to_owned(),
        seats: vec![(hostile.to_owned(), hostile.to_owned())],
        addressee: Addressee::Buyer {
            total: Money::new(2500, Currency::parse("EUR").expect("a code")),
            ticket_url: format!("https://rowlock.example/\"{hostile}"),
        },
        ..mail()
    });
    assert!(!html.contains("<script") && !html.contains("<a href=\"https://evil"), "{html}");
    assert_eq!(html.matches("<a ").count(), 1);
}

#[test]
fn a_name_from_right_to_left_or_in_pictures_reads_on_but_turns_nothing_around() {
    let hostile = "\u{202E}ليلى\u{2066} 👩‍👩‍👧";
    assert_eq!(one_line(hostile), "ليلى 👩‍👩‍👧");
    let mail = TicketMail { holder_name: hostile.to_owned(), film: hostile.to_owned(), ..mail() };
    assert!(as_html(&mail).contains("<bdi>ليلى 👩‍👩‍👧</bdi>"));
    assert!(headers(&mail).is_ascii());
}

#[test]
fn addresses_that_cannot_be_one_are_refused_before_anything_is_sold() {
    for good in ["ana@example.org", "a.b+tickets@sub.example.co.uk"] {
        assert!(is_address(good), "{good}");
    }
    for bad in ["", "ana", "ana@", "@example.org", "a b@example.org", "a@b\r\nBcc: c@d", "a@b@c", "Ana <a@b.org>"] {
        assert!(!is_address(bad), "{bad:?}");
    }
    let refused = write(&from(), &TicketMail { to_email: "nobody".to_owned(), ..mail() });
    assert!(matches!(refused, Err(MailError::Unsendable(_))));
}

#[tokio::test]
async fn sending_twice_leaves_one_whole_mail_in_the_folder() {
    let folder = std::env::temp_dir().join(format!("rowlock-mail-{}", crate::ids::new_id()));
    let mailer = Mailer::into_folder(from(), &folder);
    for _ in 0..2 {
        mailer.send_ticket(&mail()).await.expect("written");
    }
    let names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    assert_eq!(names, [format!("{}.eml", mail().booking)]);
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Takes mails on this connection (RFC 5321) and says so; its answer to the first it takes at all never comes.
async fn take_mails(client: TcpStream, is_first: bool, taken: mpsc::UnboundedSender<()>) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    client.write_all(b"220 post.test\r\n").await?;
    let (mut line, mut in_mail) = (String::new(), false);
    loop {
        line.clear();
        if client.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "." => {
                in_mail = false;
                let _ = taken.send(());
                if is_first {
                    std::future::pending::<()>().await;
                }
                client.write_all(b"250 taken\r\n").await?;
            }
            _ if in_mail => {}
            "DATA" => {
                in_mail = true;
                client.write_all(b"354 go on\r\n").await?;
            }
            _ => client.write_all(b"250 yes\r\n").await?,
        }
    }
}

#[tokio::test]
async fn a_mail_nobody_waits_for_any_more_keeps_its_connection_from_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let smtp = Smtp::at(&format!("smtp://{}", listener.local_addr().expect("an address"))).expect("an address");
    let mailer = Mailer { from: from(), way: Way::Smtp(smtp) };
    let (taken, mut mails) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut is_first = true;
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(take_mails(client, std::mem::take(&mut is_first), taken.clone()));
        }
    });
    let first = mail();
    tokio::select! {
        sent = mailer.send_ticket(&first) => panic!("it was not answered: {sent:?}"),
        mail = mails.recv() => assert!(mail.is_some()),
    }
    // Its deadline is the mailer's own: on the first mail's connection it would be over without an answer.
    mailer.send_ticket(&mail()).await.expect("the next mail has a connection of its own");
    assert!(mails.recv().await.is_some());
}
