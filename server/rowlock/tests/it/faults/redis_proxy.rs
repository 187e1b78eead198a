//! A proxy in front of Redis that parses commands to find their booking and effect.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::injector::{AnswerFate, FaultInjector};
use crate::prelude::*;

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

struct EffectScripts(Vec<(&'static [&'static str], &'static str, String)>);

impl EffectScripts {
    fn new() -> Self {
        let hashed = |(effects, code): &(&'static [&'static str], &'static str)| {
            (*effects, *code, redis::Script::new(code).get_hash().to_owned())
        };
        Self(EFFECTS.iter().map(hashed).collect())
    }

    /// Effects whose script a command may run.
    fn effects_of(&self, words: &[&[u8]]) -> Option<&'static [&'static str]> {
        let (parse_command, which) = (words.first()?, words.get(1)?);
        let is_command = |(_, code, hash): &&(&'static [&'static str], &'static str, String)| match *parse_command {
            b"EVALSHA" => *which == hash.as_bytes(),
            b"EVAL" => *which == code.as_bytes(),
            _ => false,
        };
        self.0.iter().find(is_command).map(|(effects, ..)| *effects)
    }
}

/// Starts a proxy to the Redis at `address`, such as `127.0.0.1:6379`, and returns the proxy's address.
pub async fn start(address: String, injector: Arc<FaultInjector>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let own = listener.local_addr().expect("an address").to_string();
    let scripts = Arc::new(EffectScripts::new());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (address, injector, scripts) = (address.clone(), Arc::clone(&injector), Arc::clone(&scripts));
            tokio::spawn(async move {
                let Ok(redis) = TcpStream::connect(&address).await else { return };
                // When one side closes, the other is closed too.
                let _ = pass(client, redis, &injector, &scripts).await;
            });
        }
    });
    own
}

/// Forwards in both directions until one side closes or a fault applies.
async fn pass(
    mut client: TcpStream,
    mut redis: TcpStream,
    injector: &FaultInjector,
    scripts: &EffectScripts,
) -> std::io::Result<()> {
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
                while let Some((effects, length)) = first_effects(&unread, injector, scripts) {
                    let passing: Vec<u8> = unread.drain(..length).collect();
                    if effects.iter().any(|(booking, effect)| !injector.reaches_service(*booking, effect)) {
                        return Ok(());
                    }
                    let minds = effects.iter().any(|(booking, effect)| injector.may_lose_answer(*booking, effect));
                    let calling_server = injector.calling_server();
                    redis.write_all(&passing).await?;
                    if minds {
                        drain_answers(&mut redis).await?;
                        if injector.answer(calling_server, &effects).await != AnswerFate::Arrives {
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

fn first_effects(
    bytes: &[u8],
    injector: &FaultInjector,
    scripts: &EffectScripts,
) -> Option<(Vec<(Uuid, &'static str)>, usize)> {
    let (words, length) = parse_command(bytes)?;
    let Some(alike) = scripts.effects_of(&words) else { return Some((Vec::new(), length)) };
    let bookings = injector.bookings_of_words(words.iter().copied());
    Some((bookings.into_iter().map(|booking| (booking, injector.pick_armed(booking, alike))).collect(), length))
}

/// Waits until Redis has done all commands it was sent, by a final command. Discards all answers.
async fn drain_answers(redis: &mut TcpStream) -> std::io::Result<()> {
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

/// Parses the first complete command of `bytes`, such as `*1\r\n$4\r\nPING\r\n`. Returns its words and its length.
fn parse_command(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (count, mut at) = parse_number(bytes, 0, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, begin) = parse_number(bytes, at, b'$')?;
        words.push(bytes.get(begin..begin + length)?);
        at = begin + length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}

/// Parses a line `<sign><number>\r\n` at `at`. Returns the number and the start of the next line.
fn parse_number(bytes: &[u8], at: usize, sign: u8) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    assert_eq!(line[0], sign, "clients send arrays of bulk strings");
    let digits = std::str::from_utf8(&line[1..end]).expect("digits");
    Some((digits.parse().expect("a number"), at + end + 2))
}
