//! A proxy in front of Redis: it reads what passes far enough to see whose effect it is.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use super::wires::{Answer, Wires};

/// Read at once, bytes.
const CHUNK_BYTES: usize = 16 * 1024;

macro_rules! script {
    ($name:literal) => {
        concat!(
            include_str!("../../../../seats/src/seat_locks/lua/prelude.lua"),
            "\n",
            include_str!(concat!("../../../../seats/src/seat_locks/lua/", $name, ".lua"))
        )
    };
}

/// Scripts that are effects of bookings.
const EFFECTS: [(&[&str], &str); 3] = [
    (&["mark_booked"], script!("book")),
    (&["release_seats", "release_part"], script!("free")),
    (&["release_seats"], script!("renew")),
];

/// Scripts by their text and by their hash.
struct Scripts(Vec<(&'static [&'static str], &'static str, String)>);

impl Scripts {
    fn new() -> Self {
        let hashed = |(effects, code): &(&'static [&'static str], &'static str)| {
            (*effects, *code, redis::Script::new(code).get_hash().to_owned())
        };
        Self(EFFECTS.iter().map(hashed).collect())
    }

    /// The effects a command may run the script of.
    fn effects_of(&self, words: &[&[u8]]) -> Option<&'static [&'static str]> {
        let (command, which) = (words.first()?, words.get(1)?);
        let known = |(_, code, hash): &&(&'static [&'static str], &'static str, String)| match *command {
            b"EVALSHA" => *which == hash.as_bytes(),
            b"EVAL" => *which == code.as_bytes(),
            _ => false,
        };
        self.0.iter().find(known).map(|(effects, ..)| *effects)
    }
}

/// Starts a proxy to the Redis at `address`, `127.0.0.1:6379` for example, and returns its own.
pub async fn start(address: String, wires: Arc<Wires>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let own = listener.local_addr().expect("an address").to_string();
    let scripts = Arc::new(Scripts::new());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (address, wires, scripts) = (address.clone(), Arc::clone(&wires), Arc::clone(&scripts));
            tokio::spawn(async move {
                let Ok(redis) = TcpStream::connect(&address).await else { return };
                // Either side may go at any time; then the other is left as well.
                let _ = pass(client, redis, &wires, &scripts).await;
            });
        }
    });
    own
}

/// Passes both ways until one side goes or something is to go wrong.
async fn pass(mut client: TcpStream, mut redis: TcpStream, wires: &Wires, scripts: &Scripts) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    redis.set_nodelay(true)?;
    let (mut asked, mut answered) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut unread = Vec::new();
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                unread.extend_from_slice(&asked[..read]);
                while let Some((effects, length)) = first_of(&unread, wires, scripts) {
                    let passing: Vec<u8> = unread.drain(..length).collect();
                    if effects.iter().any(|(booking, effect)| !wires.lets_through(*booking, effect)) {
                        return Ok(());
                    }
                    let minds = effects.iter().any(|(booking, effect)| wires.minds_the_answer(*booking, effect));
                    let asker = wires.asker();
                    redis.write_all(&passing).await?;
                    if minds {
                        is_done(&mut redis).await?;
                        if wires.answer(asker, &effects).await != Answer::Arrives {
                            return Ok(());
                        }
                    }
                }
            }
            read = redis.read(&mut answered) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                client.write_all(&answered[..read]).await?;
            }
        }
    }
}

/// Whose effects the first whole command of `bytes` is, and how long it is.
fn first_of(bytes: &[u8], wires: &Wires, scripts: &Scripts) -> Option<(Vec<(Uuid, &'static str)>, usize)> {
    let (words, length) = command(bytes)?;
    let Some(alike) = scripts.effects_of(&words) else { return Some((Vec::new(), length)) };
    let bookings = wires.bookings_of_words(words.iter().copied());
    Some((bookings.into_iter().map(|booking| (booking, wires.which(booking, alike))).collect(), length))
}

/// Waits until Redis has done everything it was sent: it answers in order, and this is asked last. All
/// answers are kept.
async fn is_done(redis: &mut TcpStream) -> std::io::Result<()> {
    let mark = platform::ids::new_id().simple().to_string();
    redis.write_all(format!("*2\r\n$4\r\nPING\r\n${}\r\n{mark}\r\n", mark.len()).as_bytes()).await?;
    let (mut answers, mut chunk) = (Vec::new(), vec![0; CHUNK_BYTES]);
    while !answers.windows(mark.len()).any(|window| window == mark.as_bytes()) {
        let read = redis.read(&mut chunk).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        answers.extend_from_slice(&chunk[..read]);
    }
    Ok(())
}

/// The first whole command of `bytes`, `*2\r\n$4\r\nPING\r\n$1\r\na\r\n`: its words, and how long it is.
fn command(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (count, mut at) = number(bytes, 0, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, begin) = number(bytes, at, b'$')?;
        words.push(bytes.get(begin..begin + length)?);
        at = begin + length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}

/// A line `<sign><number>\r\n` at `at`: the number, and where the next line begins.
fn number(bytes: &[u8], at: usize, sign: u8) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    assert_eq!(line[0], sign, "clients send arrays of bulk strings");
    let digits = std::str::from_utf8(&line[1..end]).expect("digits");
    Some((digits.parse().expect("a number"), at + end + 2))
}
