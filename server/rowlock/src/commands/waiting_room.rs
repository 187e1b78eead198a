//! `rowlock waiting-room`: a show is entered through one, or not any more.

use clap::Subcommand;
use domain::api::waiting_room::WaitingRoomRequest;
use platform::clock;
use uuid::Uuid;

use super::{Database, in_words};

#[derive(Subcommand)]
pub enum WaitingRoomCommand {
    /// Give the show a waiting room, or change the one it has.
    On {
        /// The show.
        show: Uuid,
        /// When it opens, for example `2026-12-01T10:00:00Z`.
        #[arg(long)]
        opens_at: String,
        /// People let in a second at most, 1 to 1,000.
        #[arg(long)]
        per_second: u32,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
    /// Open the show to all visitors; tickets of the room are void.
    Off {
        /// The show.
        show: Uuid,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
}

pub async fn run(what: WaitingRoomCommand, database: &Database) -> anyhow::Result<()> {
    let pg = database.connect(1).await?;
    let (show, request) = match what {
        WaitingRoomCommand::On { show, opens_at, per_second, reason } => {
            let (opens_at, per_second) = (Some(opens_at), Some(per_second));
            (show, WaitingRoomRequest { on: true, opens_at, per_second, reason })
        }
        WaitingRoomCommand::Off { show, reason } => {
            (show, WaitingRoomRequest { on: false, opens_at: None, per_second: None, reason })
        }
    };
    let show = catalogue::Catalogue::new(pg.clone()).find_show(show).await.map_err(in_words)?;
    let mut tx = pg.begin().await?;
    admission::waiting_room::apply_request(&mut tx, &show, None, &request, None, clock::now())
        .await
        .map_err(|refused| in_words(refused.problem()))?;
    tx.commit().await?;
    println!("the waiting room is {}; servers know within seconds", if request.on { "on" } else { "off" });
    Ok(())
}
