//! Changes to the layout and stock of a test's show, before a server has loaded it.

use serde_json::{Value, json};

use super::{LAYOUT, World};

impl World {
    /// Divides the layout into three sections of a hundred seats. Call it before the show is loaded.
    pub async fn divide_room(&self) {
        let rows = [("Left", "A-E", 0), ("Middle", "F-J", 500), ("Right", "K-O", 1_000)];
        let zones = rows.map(|(name, rows, x)| {
            json!({ "name": name, "category": "gold", "at": [x, 0], "rows": [{ "rows": rows, "seats": "1-20" }] })
        });
        let mut layout: Value = serde_json::from_str(LAYOUT).expect("the sketch is JSON");
        layout["zones"] = zones.to_vec().into();
        let done = sqlx::query("UPDATE layouts SET plan = $1").bind(layout).execute(&self.pg).await;
        done.expect("the room is divided");
    }

    /// Blocks every seat of the show but these. Call it before the show is loaded.
    pub async fn sell_only(&self, seats: &[i32]) {
        let others: Vec<i32> = (0..300).filter(|seat| !seats.contains(seat)).collect();
        let done = sqlx::query("UPDATE shows SET blocked = $1").bind(others).execute(&self.pg).await;
        done.expect("the other seats are blocked");
    }

    /// Adds a standing area 0 with `capacity` places. Call it before the show is loaded.
    pub async fn open_floor(&self, capacity: i32) {
        sqlx::query(
            "INSERT INTO area_stock (show_id, area_no, name, category, capacity) VALUES ($1, 0, 'Floor', 'gold', $2)",
        )
        .bind(self.show)
        .bind(capacity)
        .execute(&self.pg)
        .await
        .expect("the floor is opened");
    }
}
