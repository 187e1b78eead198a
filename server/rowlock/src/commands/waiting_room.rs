//! `rowlock waiting-room`: a show is entered through one, or not any more.

use clap::Subcommand;
use domain::api::waiting_room::WaitingRoomRequest;
use domain::time::{MINUTE_MS, Timestamp};
use platform::clock;
use platform::database::BindAll;
use sqlx::PgPool;
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
    /// Give a coming show of a demo's screen a waiting room that opens a day before it begins.
    #[command(hide = true)]
    Demo {
        /// The screen.
        screen: String,
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

const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// People let in a second in a demo.
const DEMO_PER_SECOND: u32 = 2;

pub async fn run(what: WaitingRoomCommand, database: &Database) -> anyhow::Result<()> {
    let pg = database.connect(1).await?;
    let now = clock::now();
    let (show, request) = match what {
        WaitingRoomCommand::On { show, opens_at, per_second, reason } => {
            let (opens_at, per_second) = (Some(opens_at), Some(per_second));
            (show, WaitingRoomRequest { on: true, opens_at, per_second, reason })
        }
        WaitingRoomCommand::Demo { screen } => {
            let Some((show, starts_at)) = demo_show(&pg, &screen, now).await? else { return Ok(()) };
            let opens_at = Some(clock::rfc3339(starts_at.plus_ms(-DAY_MS)));
            let (per_second, reason) = (Some(DEMO_PER_SECOND), "The demo shows a waiting room.".to_owned());
            (show, WaitingRoomRequest { on: true, opens_at, per_second, reason })
        }
        WaitingRoomCommand::Off { show, reason } => {
            (show, WaitingRoomRequest { on: false, opens_at: None, per_second: None, reason })
        }
    };
    let show = catalogue::Catalogue::new(pg.clone()).find_show(show).await.map_err(in_words)?;
    let mut tx = pg.begin().await?;
    admission::waiting_room::apply_request(&mut tx, &show, None, &request, None, now)
        .await
        .map_err(|refused| in_words(refused.problem()))?;
    tx.commit().await?;
    println!("the waiting room is {}; servers know within seconds", if request.on { "on" } else { "off" });
    Ok(())
}

/// The first show of a screen at least two days away, and its start; `None` if it has, or had, a waiting room.
async fn demo_show(pg: &PgPool, screen: &str, now: Timestamp) -> sqlx::Result<Option<(Uuid, Timestamp)>> {
    let sql = "SELECT coming.id, (extract(epoch FROM coming.starts_at) * 1000)::bigint
               FROM (SELECT id, starts_at FROM shows
                     WHERE screen_id = $1 AND starts_at >= $2 AND NOT called_off ORDER BY starts_at LIMIT 1) coming
               WHERE NOT EXISTS (SELECT 1 FROM waiting_rooms room WHERE room.show_id = coming.id)";
    let found: Option<(Uuid, i64)> =
        sqlx::query_as(sql).bind_all((screen, clock::to_utc(now.plus_ms(2 * DAY_MS)))).fetch_optional(pg).await?;
    Ok(found.map(|(show, starts_ms)| (show, Timestamp(starts_ms))))
}
