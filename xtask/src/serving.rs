//! The product running on given stores: schema, demo data, payment simulator, servers.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use rustix::process::Signal;

use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::{Output, Processes};
use crate::progress::Step;
use crate::services::{Folder, Stores, ports};
use crate::stop::Stop;

/// Until a started program answers.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// One question whether it does.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// The port people expect.
const USUAL_PORT: u16 = 3000;
/// The simulator's usual port.
const USUAL_SIMULATOR_PORT: u16 = 3010;

/// What all servers of one product share.
pub struct Product<'a> {
    places: &'a Places,
    stores: Stores,
    simulator_key: String,
    webhook_secret: String,
    token_secret: String,
    simulator_url: String,
    mailbox: PathBuf,
}

/// One server of it.
pub struct Server {
    /// Its name in logs.
    pub name: &'static str,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The address people type.
    pub public_url: String,
    /// Settings beyond those every server gets.
    pub settings: Vec<(&'static str, String)>,
}

impl Server {
    /// One on a free port of 127.0.0.1, for programs of ours alone.
    pub fn on_any_port(folder: &Folder, name: &'static str, settings: Vec<(&'static str, String)>) -> Result<Self> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::claim(&folder.ports(), name, None)?));
        Ok(Self { name, listen, public_url: format!("http://{listen}"), settings })
    }
}

/// Settings of a server that a test or a measurement tries for seats at, and watches maps: all of it comes from one
/// address, and is quicker than people.
pub fn without_hold_limits() -> Vec<(&'static str, String)> {
    ["HOLDS_PER_VISITOR_MIN", "HOLDS_PER_ADDRESS_MIN", "SOCKETS_PER_ADDRESS", "QUEUE_TICKETS_PER_ADDRESS"]
        .map(|name| (name, "0".to_owned()))
        .into()
}

/// Who works in every theatre of the demo.
const DEMO_MANAGER: &str = "manager@example.org";

impl<'a> Product<'a> {
    /// Prepares the stores: schema and demo data. Safe to repeat; a later day adds its shows.
    pub fn prepare(places: &'a Places, folder: &mut Folder, stores: Stores, stop: &Stop) -> Result<Self> {
        let product = Self {
            places,
            stores,
            simulator_key: folder.secrets.get("simulator_api_key")?,
            webhook_secret: folder.secrets.get("simulator_webhook_secret")?,
            token_secret: folder.secrets.get("token_secret")?,
            simulator_url: String::new(),
            mailbox: folder.mailbox(),
        };
        let step = Step::quiet("bring the database up to date");
        command::run_silently(product.program("rowlock").arg("migrate"), stop)?;
        step.done();
        let step = Step::quiet("load the demo cinemas");
        product.load_cinemas(Path::new("demo"), stop)?;
        step.done();
        Ok(product)
    }

    /// Loads the cinemas and shows of a folder like `demo/`.
    pub fn load_cinemas(&self, folder: &Path, stop: &Stop) -> Result<()> {
        command::run_silently(self.program("rowlock").arg("demo").arg("--dir").arg(folder), stop)
    }

    /// Makes somebody a manager of every theatre.
    pub fn make_manager(&self, email: &str, password: &str, stop: &Stop) -> Result<()> {
        let mut command = self.program("rowlock");
        command.args(["admin", "create", "--email", email, "--name", "Max Manager"]).env("ROWLOCK_PASSWORD", password);
        command::run_silently(&mut command, stop)
    }

    /// Somebody who works in every theatre of the demo: the words one signs in with, of which the password was made for
    /// this folder. Nobody in a database that is not ours.
    pub fn manager_of_the_demo(&self, folder: &mut Folder, stop: &Stop) -> Result<Option<String>> {
        if std::env::var_os("DATABASE_URL").is_some() {
            return Ok(None);
        }
        let password = folder.secrets.get("manager_password")?;
        self.make_manager(DEMO_MANAGER, &password, stop)?;
        Ok(Some(format!("{DEMO_MANAGER}, password {password}")))
    }

    /// Starts the payment simulator where people can reach it: on the network if the server is.
    pub fn start_simulator(
        &mut self,
        processes: &mut Processes<'_>,
        folder: &Folder,
        ip: IpAddr,
        output: Output,
    ) -> Result<()> {
        let port = ports::claim(&folder.ports(), "simulator", Some(USUAL_SIMULATOR_PORT))?;
        let listen = SocketAddr::new(ip, port);
        self.simulator_url = address_for_people(listen);
        let mut command = self.program("payment-simulator");
        command.env("LISTEN", listen.to_string()).env("PUBLIC_URL", &self.simulator_url);
        processes.start("payments", &mut command, Signal::TERM, output)?;
        let local = SocketAddr::new(reachable(ip), port);
        processes.wait_until("the payment simulator", READY_WITHIN, || status(local, "/").is_some())
    }

    /// Starts a server and waits until it is ready for visitors.
    pub fn start_server(&self, processes: &mut Processes<'_>, server: &Server, output: Output) -> Result<()> {
        let step = Step::quiet(format!("{} answers", server.name));
        let mut command = self.program("rowlock");
        command.arg("serve").env("LISTEN", server.listen.to_string()).env("PUBLIC_URL", &server.public_url);
        command.envs(server.settings.iter().map(|(name, value)| (name, value)));
        processes.start(server.name, &mut command, Signal::TERM, output)?;
        let local = SocketAddr::new(reachable(server.listen.ip()), server.listen.port());
        processes.wait_until(server.name, READY_WITHIN, || status(local, "/readyz") == Some(200))?;
        step.done();
        Ok(())
    }

    /// Where payments are made.
    pub fn simulator_url(&self) -> &str {
        &self.simulator_url
    }

    /// What opens the API of payments.
    pub fn simulator_key(&self) -> &str {
        &self.simulator_key
    }

    fn program(&self, name: &str) -> Command {
        let mut command = native::program(self.places, name);
        command
            .env("DATABASE_URL", &self.stores.postgres)
            .env("REDIS_URL", &self.stores.redis)
            .env("SITE_ROOT", self.places.site())
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

/// Where to serve: `LISTEN`, or the usual port, or another one if that is taken.
pub fn listen_address(folder: &Folder) -> Result<SocketAddr> {
    if let Ok(wish) = std::env::var("LISTEN") {
        let address: SocketAddr = wish.parse()?;
        if std::net::TcpListener::bind(address).is_err() {
            bail!("LISTEN={wish}: somebody else listens there, or the address is not this machine's");
        }
        return Ok(address);
    }
    let port = ports::claim(&folder.ports(), "rowlock", Some(USUAL_PORT))?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// The address to type for a listening address: this machine's own on the network where it listens on all.
pub fn address_for_people(listen: SocketAddr) -> String {
    let ip = if listen.ip().is_unspecified() { own_address() } else { listen.ip() };
    format!("http://{}", SocketAddr::new(ip, listen.port()))
}

/// The address other machines see. Connecting a datagram socket sends nothing; it asks the routing table.
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

/// The body of one GET that is answered with 200.
pub fn get(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(READY_WITHIN))?;
    // HTTP/1.0: the body comes whole and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end_of_head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let is_ok = answer.get(9..12) == Some(b"200".as_slice());
    match end_of_head {
        Some(end) if is_ok => Ok(answer.split_off(end + 4)),
        _ => bail!("GET {path} was answered with {:?}", String::from_utf8_lossy(answer.get(..12).unwrap_or_default())),
    }
}

/// The status of one GET, `None` if nobody answers.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut head = [0_u8; 12];
    stream.read_exact(&mut head).ok()?;
    // "HTTP/1.1 200"
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}
