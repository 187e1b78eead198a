//! A TCP proxy in front of Postgres, for tests that observe or change its traffic.

use tokio::net::{TcpListener, TcpStream};

/// Accepts connections for the Postgres at `database_url`, connects each to it, and hands both ends to `pass`. Returns
/// the proxy's address as a DATABASE_URL.
pub async fn open<F>(database_url: &str, pass: impl Fn(TcpStream, TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let mut url = reqwest::Url::parse(database_url).expect("DATABASE_URL is an address");
    let behind = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(5432));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let own = listener.local_addr().expect("an address");
    url.set_ip_host(own.ip()).expect("the URL has a host");
    url.set_port(Some(own.port())).expect("the URL has a host");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(postgres) = TcpStream::connect(&behind).await else { continue };
            // TCP_NODELAY: no message waits for the acknowledgement of the one before.
            let Ok(()) = client.set_nodelay(true).and_then(|()| postgres.set_nodelay(true)) else { continue };
            tokio::spawn(pass(client, postgres));
        }
    });
    url.to_string()
}
