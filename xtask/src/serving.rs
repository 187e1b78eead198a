//! Starts the product on given stores: schema, demo data, payment simulator, servers.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::command;
use crate::native;
use crate::paths::Paths;
use crate::processes::{Output, Processes};
use crate::progress::ProgressStep;
use crate::services::{DataFolder, Stores};
use crate::stop::Stop;

const READY_TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
const DEFAULT_PORT: u16 = 3000;
const DEFAULT_SIMULATOR_PORT: u16 = 3010;

/// Settings shared by all servers of a product.
pub struct Product<'a> {
    paths: &'a Paths,
    stores: Stores,
    pub simulator_key: String,
    webhook_secret: String,
    token_secret: String,
    pub simulator_url: String,
    mailbox: PathBuf,
}

pub struct ServerSettings {
    pub name: &'static str,
    pub listen: SocketAddr,
    pub public_url: String,
    /// Settings in addition to the shared ones.
    pub settings: Vec<(&'static str, String)>,
}

impl ServerSettings {
    /// Creates a server on a free port of 127.0.0.1, for tests and benchmarks.
    pub fn on_free_port(
        folder: &DataFolder,
        name: &'static str,
        settings: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, folder.claim_port(name, None)?));
        Ok(Self { name, listen, public_url: format!("http://{listen}"), settings })
    }
}

/// Returns settings without rate limits, for tests and benchmarks: all their requests come from one address, faster than
/// people.
pub fn without_hold_limits() -> Vec<(&'static str, String)> {
    ["HOLDS_PER_VISITOR_MIN", "HOLDS_PER_ADDRESS_MIN", "SOCKETS_PER_ADDRESS", "QUEUE_TICKETS_PER_ADDRESS"]
        .map(|name| (name, "0".to_owned()))
        .into()
}

const DEMO_MANAGER: &str = "manager@example.org";
/// The screen of which one show has a waiting room in the demo.
const DEMO_WAITING_ROOM_SCREEN: &str = "meridian-berlin-2";

impl<'a> Product<'a> {
    /// Prepares the stores: schema and demo data. Idempotent; a call on a later day adds its shows.
    pub fn prepare(paths: &'a Paths, folder: &mut DataFolder, stores: Stores, stop: &Stop) -> Result<Self> {
        let product = Self {
            paths,
            stores,
            simulator_key: folder.secrets.get("simulator_api_key")?,
            webhook_secret: folder.secrets.get("simulator_webhook_secret")?,
            token_secret: folder.secrets.get("token_secret")?,
            simulator_url: String::new(),
            mailbox: folder.mailbox(),
        };
        let step = ProgressStep::quiet("bring the database up to date");
        command::run_silently(product.program("rowlock").arg("migrate"), stop)?;
        step.done();
        let step = ProgressStep::quiet("load the demo cinemas");
        product.load_cinemas(Path::new("demo"), stop)?;
        step.done();
        Ok(product)
    }

    /// Prepares the stores and starts the simulator and one server on 127.0.0.1, with logs in files, for tests and
    /// benchmarks.
    pub fn start_for_tests(
        paths: &'a Paths,
        folder: &mut DataFolder,
        processes: &mut Processes<'_>,
        stores: Stores,
        stop: &Stop,
    ) -> Result<(Self, ServerSettings)> {
        let mut product = Self::prepare(paths, folder, stores, stop)?;
        product.start_simulator_for_tests(processes, folder)?;
        let server = ServerSettings::on_free_port(folder, "rowlock", without_hold_limits())?;
        product.start_server(processes, &server, Output::File(folder.log(server.name)))?;
        Ok((product, server))
    }

    pub fn start_simulator_for_tests(&mut self, processes: &mut Processes<'_>, folder: &DataFolder) -> Result<()> {
        let output = Output::File(folder.log("payments"));
        self.start_simulator(processes, folder, IpAddr::V4(Ipv4Addr::LOCALHOST), output)
    }

    /// Loads the cinemas and shows of a folder like `demo/`.
    pub fn load_cinemas(&self, folder: &Path, stop: &Stop) -> Result<()> {
        command::run_silently(self.program("rowlock").arg("demo").arg("--dir").arg(folder), stop)
    }

    pub fn make_manager(&self, email: &str, password: &str, stop: &Stop) -> Result<()> {
        let mut command = self.program("rowlock");
        command.args(["admin", "create", "--email", email, "--name", "Max Manager"]).env("ROWLOCK_PASSWORD", password);
        command::run_silently(&mut command, stop)
    }

    /// Creates the demo's manager and returns the credentials; the password is generated per data folder. Returns `None`
    /// for a database given by `DATABASE_URL`.
    pub fn create_demo_manager(&self, folder: &mut DataFolder, stop: &Stop) -> Result<Option<String>> {
        if std::env::var_os("DATABASE_URL").is_some() {
            return Ok(None);
        }
        let password = folder.secrets.get("manager_password")?;
        self.make_manager(DEMO_MANAGER, &password, stop)?;
        Ok(Some(format!("{DEMO_MANAGER}, password {password}")))
    }

    /// Gives a show of the demo a waiting room. Idempotent.
    pub fn add_demo_waiting_room(&self, stop: &Stop) -> Result<()> {
        command::run_silently(self.program("rowlock").args(["waiting-room", "demo", DEMO_WAITING_ROOM_SCREEN]), stop)
    }

    /// Starts the simulated visitors of a running server, `visitors` at a time.
    pub fn start_crowd(&self, processes: &mut Processes<'_>, server: &ServerSettings, visitors: u16) -> Result<()> {
        let local = SocketAddr::new(reachable(server.listen.ip()), server.listen.port());
        let (site, visitors) = (format!("http://{local}"), visitors.to_string());
        let mut command = self.program("payment-simulator");
        command.args(["crowd", "--site", &site, "--visitors", &visitors]);
        processes.start("crowd", &mut command, Signal::TERM, Output::Shown)
    }

    /// Starts the payment simulator on the server's network interface, so that payers can reach it.
    pub fn start_simulator(
        &mut self,
        processes: &mut Processes<'_>,
        folder: &DataFolder,
        ip: IpAddr,
        output: Output,
    ) -> Result<()> {
        let port = folder.claim_port("simulator", Some(DEFAULT_SIMULATOR_PORT))?;
        let listen = SocketAddr::new(ip, port);
        self.simulator_url = public_address(listen);
        let mut command = self.program("payment-simulator");
        command.env("LISTEN", listen.to_string()).env("PUBLIC_URL", &self.simulator_url);
        processes.start("payments", &mut command, Signal::TERM, output)?;
        let local = SocketAddr::new(reachable(ip), port);
        processes.wait_until("the payment simulator", READY_TIMEOUT, || status(local, "/").is_some())
    }

    pub fn start_server(&self, processes: &mut Processes<'_>, server: &ServerSettings, output: Output) -> Result<()> {
        let step = ProgressStep::quiet(format!("{} answers", server.name));
        let mut command = self.program("rowlock");
        command.arg("serve").env("LISTEN", server.listen.to_string()).env("PUBLIC_URL", &server.public_url);
        command.envs(server.settings.iter().map(|(name, value)| (name, value)));
        processes.start(server.name, &mut command, Signal::TERM, output)?;
        let local = SocketAddr::new(reachable(server.listen.ip()), server.listen.port());
        processes.wait_until(server.name, READY_TIMEOUT, || status(local, "/readyz") == Some(200))?;
        step.done();
        Ok(())
    }

    fn program(&self, name: &str) -> Command {
        let mut command = native::program(self.paths, name);
        command
            .env("DATABASE_URL", &self.stores.postgres)
            .env("REDIS_URL", &self.stores.redis)
            .env("SITE_ROOT", self.paths.site())
            .env("SIMULATOR_URL", &self.simulator_url)
            .env("SIMULATOR_API_KEY", &self.simulator_key)
            .env("SIMULATOR_WEBHOOK_SECRET", &self.webhook_secret)
            .env("TOKEN_SECRET", &self.token_secret);
        if std::env::var_os("SMTP_URL").is_none() {
            command.env("MAILBOX_DIR", &self.mailbox);
        }
        command
    }
}

/// Returns the address to listen at: `LISTEN`, or the default port, or a free one if that is taken.
pub fn listen_address(folder: &DataFolder) -> Result<SocketAddr> {
    if let Ok(text) = std::env::var("LISTEN") {
        let address: SocketAddr = text.parse()?;
        if std::net::TcpListener::bind(address).is_err() {
            bail!("LISTEN={address}: the port is in use, or the address is not this machine's");
        }
        return Ok(address);
    }
    let port = folder.claim_port("rowlock", Some(DEFAULT_PORT))?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Returns the URL of a listen address; for an unspecified address with this machine's network address.
pub fn public_address(listen: SocketAddr) -> String {
    let ip = if listen.ip().is_unspecified() { own_address() } else { listen.ip() };
    format!("http://{}", SocketAddr::new(ip, listen.port()))
}

/// Returns this machine's network address. Connecting a datagram socket sends nothing; it reads the routing table.
fn own_address() -> IpAddr {
    let ask = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        socket.local_addr().ok()
    };
    ask().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

fn reachable(ip: IpAddr) -> IpAddr {
    if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip }
}

/// Sends a GET request and returns the body; fails unless the status is 200.
pub fn get(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    match request(address, path, READY_TIMEOUT)? {
        (200, body) => Ok(body),
        (status, _) => bail!("GET {path} was answered with {status}"),
    }
}

/// Sends a GET request and returns the status; `None` without an answer.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    request(address, path, ANSWER_TIMEOUT).ok().map(|(status, _)| status)
}

/// Sends a GET request and returns status and body.
fn request(address: SocketAddr, path: &str, timeout: Duration) -> Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
    stream.set_read_timeout(Some(timeout))?;
    // HTTP/1.0: the body is not chunked and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end_of_head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("an incomplete answer")?;
    // "HTTP/1.1 200"
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Ok((status.context("an answer without a status")?, answer.split_off(end_of_head + 4)))
}
