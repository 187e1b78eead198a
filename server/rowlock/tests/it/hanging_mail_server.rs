//! A mail server that accepts connections and never answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub struct HangingMailServer {
    /// For `SMTP_URL`.
    pub url: String,
    waiting_clients: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl HangingMailServer {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", listener.local_addr().expect("an address"));
        let waiting_clients = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&waiting_clients);
        let serving = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                clients.spawn(async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    // A client sends nothing before the greeting, so this read ends when it disconnects.
                    let _ = client.read_u8().await;
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, waiting_clients, serving }
    }

    pub fn waiting_clients(&self) -> usize {
        self.waiting_clients.load(Ordering::SeqCst)
    }

    pub fn close(self) {
        self.serving.abort();
    }
}
