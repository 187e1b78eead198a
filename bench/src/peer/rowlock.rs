//! Rowlock in the comparison: one server and the payment simulator, on the stores of the run.

use std::net::SocketAddr;

use anyhow::Result;

use super::{ComparedServer, ROWLOCK};
use crate::checker::{Findings, Ledger, LockState};
use crate::frame::Protocol;
use crate::purchase::{Api, RowlockApi};
use crate::sale::wait_until_settled;
use crate::world::{BenchServer, Process, RunPaths, Show, World};

/// Fields are dropped in their order: the server before the database.
pub struct Rowlock {
    server: BenchServer,
    _simulator: Process,
    world: World,
}

impl Rowlock {
    pub fn start(paths: &RunPaths) -> Result<Self> {
        let world = World::create(paths)?;
        let (address, simulator) = world.simulator()?;
        let server = world.server("rowlock", Some(address))?;
        Ok(Self { server, _simulator: simulator, world })
    }
}

impl ComparedServer for Rowlock {
    fn name(&self) -> &'static str {
        ROWLOCK
    }

    fn api(&self) -> &'static dyn Api {
        &RowlockApi
    }

    fn address(&self) -> SocketAddr {
        self.server.address
    }

    fn processes(&self) -> [u32; 3] {
        [self.server.process.pid(), self.world.store.pid(), self.world.postmaster()]
    }

    fn map_path(&self, show: &Show) -> String {
        show.seats_path()
    }

    fn live_path(&self, show: &Show) -> String {
        show.live_path()
    }

    fn live_protocol(&self) -> Protocol {
        Protocol::Frames
    }

    fn create_shows(&mut self, seats: u32, count: usize) -> Result<Vec<Show>> {
        self.world.shows(seats, count)
    }

    fn settle(&mut self) -> Result<Findings> {
        wait_until_settled(&self.world)
    }

    fn stored(&mut self, show: &Show) -> Result<LockState> {
        self.world.store.stored(show)
    }

    fn ledger(&mut self, show: &Show) -> Result<Ledger> {
        self.world.ledger(show)
    }

    fn seat_states(&self, show: &Show) -> Result<Vec<u8>> {
        self.server.seat_states(show)
    }

    fn version(&mut self, show: &Show, _changes: u64) -> Result<u64> {
        self.world.store.version(show)
    }

    fn clear(&mut self, shows: &[Show]) -> Result<()> {
        shows.iter().try_for_each(|show| self.world.store.delete_show(show))
    }
}
