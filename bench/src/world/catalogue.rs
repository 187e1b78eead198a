//! Shows for the benchmarks, inserted directly into the catalogue's tables (`migrations/0003_catalogue.sql`).

use anyhow::{Context, Result};
use serde_json::json;
use uuid::Uuid;

use super::World;
use crate::http;

/// Price of every seat, in cents.
pub const PRICE: i64 = 1_000;
/// Duration of holds, milliseconds: none may expire during a round.
const HOLD_MS: i64 = 3_600_000;
const SEATS_PER_ROW: u32 = 100;

/// A show under test.
#[derive(Clone, Copy, Debug)]
pub struct Show {
    pub id: Uuid,
    /// Number of seats; they are numbered `0..seats`.
    pub seats: u32,
}

impl Show {
    pub fn seats_path(&self) -> String {
        format!("/api/v1/shows/{}/seats", self.id)
    }

    pub fn live_path(&self) -> String {
        format!("/api/v1/shows/{}/live", self.id)
    }
}

impl World {
    /// Inserts a show and builds its map in Redis with a temporary server.
    pub fn loaded_show(&mut self, seats: u32) -> Result<Show> {
        let show = self.shows(seats, 1)?[0];
        let server = self.server("rowlock-once", None)?;
        let (status, _) = http::get(server.address, &show.seats_path())?;
        anyhow::ensure!(status == 200, "the map of a new show is answered with {status}");
        Ok(show)
    }

    /// Inserts `count` shows in one room of `seats` seats, a multiple of 100 or fewer than 100.
    pub fn shows(&mut self, seats: u32, count: usize) -> Result<Vec<Show>> {
        let per_row = SEATS_PER_ROW.min(seats);
        anyhow::ensure!(seats > 0 && seats.is_multiple_of(per_row), "{seats} seats make no rows of {per_row}");
        let plan = json!({
            "sketch": 1, "name": "Bench room", "focus": {"kind": "stage", "at": [0, -60], "width": 300},
            "categories": [{"name": "gold", "label": "Gold"}],
            "zones": [{"category": "gold", "rows": [
                {"rows": format!("1-{}", seats / per_row), "seats": format!("1-{per_row}")}
            ]}]
        });
        let layout = self.random.id();
        let shows: Vec<Show> = (0..count).map(|_| Show { id: self.random.id(), seats }).collect();
        let screen = self.random.hex();
        self.runtime.block_on(async {
            for statement in [
                "INSERT INTO cities VALUES ('porto', 'Porto', 'PT', 'Europe/Lisbon') ON CONFLICT DO NOTHING",
                "INSERT INTO theatres VALUES ('bench', 'porto', 'Bench', 'Rua 2', 'EUR') ON CONFLICT DO NOTHING",
                "INSERT INTO films VALUES ('rush', 'Rush', 'All at once.', 'Everyone comes.', 90, 'PG', 'Drama', 20)
                 ON CONFLICT DO NOTHING",
            ] {
                sqlx::query(statement).execute(&self.pg).await?;
            }
            sqlx::query("INSERT INTO layouts VALUES ($1, 'Bench room', $2, $3)")
                .bind(layout)
                .bind(plan)
                .bind(seats.cast_signed())
                .execute(&self.pg)
                .await?;
            sqlx::query("INSERT INTO screens VALUES ($1, 'bench', 'Screen', $2)")
                .bind(&screen)
                .bind(layout)
                .execute(&self.pg)
                .await?;
            // Tomorrow, one hour apart: shows of a screen must not overlap.
            sqlx::query(
                "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format,
                                    currency, prices, hold_ms)
                 SELECT show.id, $2, 'rush', $3, now() + interval '1 day' + show.place * interval '1 hour',
                        current_date + 1, 'English', '2D', 'EUR', $4, $5
                 FROM UNNEST($1::uuid[]) WITH ORDINALITY AS show (id, place)",
            )
            .bind(shows.iter().map(|show| show.id).collect::<Vec<Uuid>>())
            .bind(&screen)
            .bind(layout)
            .bind(json!({ "gold": PRICE }))
            .bind(HOLD_MS)
            .execute(&self.pg)
            .await
            .context("the shows cannot be inserted")?;
            anyhow::Ok(())
        })?;
        Ok(shows)
    }
}
