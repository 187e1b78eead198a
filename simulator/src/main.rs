//! `payment-simulator`: starts the service, prints its address, and stops on Ctrl-C or SIGTERM. `payment-simulator crowd`
//! sends visitors to a demo instead.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, Subcommand};
use simulator::crowd::DemoCrowd;
use simulator::{Settings, Simulator};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Maximum back-off before the first retry of a webhook.
const WEBHOOK_BACKOFF_BASE: Duration = Duration::from_millis(500);

/// A simulated payment gateway.
#[derive(Parser)]
#[command(name = "payment-simulator")]
struct SimulatorArguments {
    #[command(subcommand)]
    command: Option<SimulatorCommand>,
    /// Address to listen at; port 0 takes a free one.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Public base URL of the payment pages; by default the listen address.
    #[arg(long, env = "PUBLIC_URL")]
    public_url: Option<String>,
    /// API key of the merchant.
    #[arg(long, env = "SIMULATOR_API_KEY", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    api_key: String,
    /// Secret that signs webhooks.
    #[arg(long, env = "SIMULATOR_WEBHOOK_SECRET", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    webhook_secret: String,
    /// Name of the merchant on the page.
    #[arg(long, env = "SIMULATOR_MERCHANT", default_value = "Rowlock Cinemas")]
    merchant: String,
    /// Time until a pending payment is decided, seconds.
    #[arg(long, default_value_t = 4)]
    pending_seconds: u64,
    /// Delay of the slow card's answer, seconds.
    #[arg(long, default_value_t = 5)]
    slow_seconds: u64,
    /// Delay of the answer for the card without an answer, seconds.
    #[arg(long, default_value_t = 60)]
    no_answer_seconds: u64,
    /// Delay of a late webhook, seconds.
    #[arg(long, default_value_t = 30)]
    late_seconds: u64,
}

#[derive(Subcommand)]
enum SimulatorCommand {
    /// Send simulated visitors to the shows of a demo. Started by `cargo xtask run`.
    #[command(hide = true)]
    Crowd {
        /// Address of the site.
        #[arg(long)]
        site: String,
        /// Visitors at a time.
        #[arg(long)]
        visitors: u16,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let arguments = SimulatorArguments::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    };
    if let Some(SimulatorCommand::Crowd { site, visitors }) = arguments.command {
        let crowd = Arc::new(DemoCrowd::new(&site)?);
        tokio::select! {
            () = crowd.run(usize::from(visitors)) => {}
            () = stop => {}
        }
        return Ok(());
    }
    let listener =
        TcpListener::bind(arguments.listen).await.with_context(|| format!("cannot listen at {}", arguments.listen))?;
    let address = format!("http://{}", listener.local_addr()?);
    // The parent process reads the address from standard output when the port is 0.
    println!("payment-simulator listening on {address}");
    let simulator = Simulator::new(Settings {
        api_key: arguments.api_key,
        webhook_secret: arguments.webhook_secret,
        public_url: arguments.public_url.unwrap_or(address).trim_end_matches('/').to_owned(),
        merchant: arguments.merchant,
        pending: Duration::from_secs(arguments.pending_seconds),
        slow: Duration::from_secs(arguments.slow_seconds),
        no_answer: Duration::from_secs(arguments.no_answer_seconds),
        late: Duration::from_secs(arguments.late_seconds),
        backoff_base: WEBHOOK_BACKOFF_BASE,
    })?;
    simulator::serve(listener, simulator, stop).await?;
    Ok(())
}
