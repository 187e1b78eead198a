//! `cargo xtask run`: from a fresh checkout to a page that sells a seat.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::native;
use crate::places::Places;
use crate::processes::{Output, Processes};
use crate::progress::seconds;
use crate::services::{self, Folder};
use crate::serving::{self, Product, Server};
use crate::site::{self, Size};
use crate::stop::Stop;

/// How often we look whether everything still runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs until asked to stop, or until something ends by itself.
pub fn run(places: &Places, stop: &Stop) -> Result<()> {
    let mut open = Open::start(places, Size::Small, stop)?;
    while !stop.asked() {
        open.processes.check()?;
        std::thread::sleep(LOOK_EVERY);
    }
    eprintln!();
    open.processes.end_all();
    Ok(())
}

/// The product, open for visitors, as `run` and `dev` have it.
pub struct Open<'a> {
    /// What its servers share.
    pub product: Product<'a>,
    /// Its one server.
    pub server: Server,
    /// All that runs.
    pub processes: Processes<'a>,
    /// Nobody else's until all of that has ended: fields are dropped in their order.
    _folder: Folder,
}

impl<'a> Open<'a> {
    /// Builds and starts everything, and says where it is.
    pub fn start(places: &'a Places, size: Size, stop: &'a Stop) -> Result<Self> {
        let began = Instant::now();
        let mut folder = Folder::open(places, "run", false)?;
        let mut processes = Processes::new(stop);
        // Stores first: what a machine lacks is said before minutes of compiling, not after.
        let stores = services::start(&mut folder, &mut processes, stop)?;
        native::build(places, stop)?;
        site::build(places, size, stop)?;
        let mut product = Product::prepare(places, &mut folder, stores, stop)?;
        let server = server(&folder)?;
        product.start_simulator(&mut processes, &folder, server.listen.ip(), Output::Shown)?;
        product.start_server(&mut processes, &server, Output::Shown)?;
        let manager = product.manager_of_the_demo(&mut folder, stop)?;
        announce(&folder, &server, &product, manager.as_deref(), began);
        Ok(Self { product, server, processes, _folder: folder })
    }
}

fn server(folder: &Folder) -> Result<Server> {
    let listen = serving::listen_address(folder)?;
    let public_url = std::env::var("PUBLIC_URL").unwrap_or_else(|_| serving::address_for_people(listen));
    Ok(Server { name: "rowlock", listen, public_url, settings: Vec::new() })
}

/// Says where everything is.
fn announce(folder: &Folder, server: &Server, product: &Product<'_>, manager: Option<&str>, began: Instant) {
    // Box office, door, programme and reports; only where the database is one of ours.
    let staff = manager
        .map(|manager| format!("    for staff        {}/staff\n                     {manager}\n", server.public_url));
    eprintln!(
        "\n  Rowlock is open after {}\n\n    the cinemas      {}\n{}    payments         {}\n    mails            {}\n    logs             {}\n\n  Ctrl-C stops everything.\n",
        seconds(began.elapsed()),
        server.public_url,
        staff.unwrap_or_default(),
        product.simulator_url(),
        folder.mailbox().display(),
        folder.path.join("logs").display(),
    );
}
