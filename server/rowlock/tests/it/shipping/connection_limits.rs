//! The shipped proxy limits the connections of a source and of its network.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::Command;

use super::{RunningProgram, file, program, proxy, with_lines_replaced};
use crate::prelude::*;
use crate::replicas::free_address;

/// Attempts to connect, 20 ms apart: a closed connection is counted for a moment longer.
const ATTEMPTS: u32 = 250;

/// Connects from this address. Returns the connection once a request was answered; `None` if the proxy rejects it.
async fn connect(source: &str, port: u16) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{source}:0").parse().expect("an address")).expect("a local address");
    let mut stream = socket.connect(([127, 0, 0, 1], port).into()).await.ok()?;
    // The proxy answers this request itself.
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: here\r\n\r\n").await.ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.ok()?;
    assert_eq!(&answer, b"HTTP/1.1 404");
    Some(stream)
}

async fn connect_with_retries(source: &str, port: u16) -> TcpStream {
    for _ in 0..ATTEMPTS {
        if let Some(stream) = connect(source, port).await {
            return stream;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("connections from {source} are rejected");
}

#[tokio::test]
async fn connections_above_the_limit_of_their_source_or_its_network_are_rejected() {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let port = free_address().port();
    let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
    let with_limit = |rule, most: u32| (rule, format!("    {rule} gt {most} }}"));
    let limits = [
        with_limit("tcp-request connection reject if { sc_conn_cur(0)", 2),
        with_limit("tcp-request connection reject if { sc_conn_cur(1)", 3),
    ];
    // No replica is there: none is needed.
    let text = proxy(port, &control, ["http://127.0.0.1:1", "http://127.0.0.1:1"]);
    let text = with_lines_replaced(&text, &limits);
    let file = file("haproxy.cfg", &text);
    let _proxy = RunningProgram::start(Command::new(program).arg("-db").arg("-f").arg(&file), &file, port).await;

    let first = connect_with_retries("127.0.1.1", port).await;
    let _second = connect_with_retries("127.0.1.1", port).await;
    assert!(connect("127.0.1.1", port).await.is_none(), "the limit of a source");
    let _neighbour = connect_with_retries("127.0.1.2", port).await;
    assert!(connect("127.0.1.3", port).await.is_none(), "the limit of its network");
    let _stranger = connect_with_retries("127.0.2.1", port).await;
    drop(first);
    connect_with_retries("127.0.1.1", port).await;
    let _ = std::fs::remove_file(&control);
}
