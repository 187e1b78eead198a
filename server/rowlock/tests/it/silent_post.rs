//! A mail server that lets everybody in and says nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// Keeps everybody waiting until it is closed.
pub struct SilentPost {
    /// For `SMTP_URL`.
    pub url: String,
    /// How many wait for a word.
    callers: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl SilentPost {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", listener.local_addr().expect("an address"));
        let callers = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&callers);
        let serving = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                clients.spawn(async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    // Whoever brings mail says nothing until they are greeted: this ends when they go.
                    let _ = client.read_u8().await;
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, callers, serving }
    }

    /// How many wait for a word.
    pub fn callers(&self) -> usize {
        self.callers.load(Ordering::SeqCst)
    }

    /// Cuts everybody off.
    pub fn close(self) {
        self.serving.abort();
    }
}
