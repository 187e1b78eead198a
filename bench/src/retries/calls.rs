//! Counters of calls to Redis and Postgres, as the two count them.

use anyhow::Result;
use redis::cmd;

use crate::world::World;

/// Calls so far, or between two reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreCalls {
    /// Commands that Redis ran, including those inside of scripts.
    pub redis: f64,
    /// Transactions that ended in this run's database; a single statement is one.
    pub postgres: f64,
}

impl StoreCalls {
    /// Reads both counters. The read itself is counted, the same number each time.
    pub fn read(world: &mut World) -> Result<Self> {
        let stats: String = cmd("INFO").arg("commandstats").query(world.store.connection())?;
        let ended: i64 = world.runtime.block_on(
            sqlx::query_scalar(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()",
            )
            .fetch_one(&world.pg),
        )?;
        Ok(Self { redis: commands(&stats), postgres: ended as f64 })
    }

    /// Returns the difference to an earlier read.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { redis: self.redis - earlier.redis, postgres: self.postgres - earlier.postgres }
    }

    /// Scales the calls to `factor` times the duration.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { redis: self.redis * factor, postgres: self.postgres * factor }
    }

    /// Subtracts the background: (Redis, Postgres). The counters are not exact, so negative results become 0.
    pub fn minus_background(&self, background: &Self) -> (f64, f64) {
        ((self.redis - background.redis).max(0.0), (self.postgres - background.postgres).max(0.0))
    }
}

/// Sums the calls of lines such as `cmdstat_get:calls=17,usec=…`.
fn commands(stats: &str) -> f64 {
    let calls = stats.lines().filter_map(|line| {
        line.strip_prefix("cmdstat_")?.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_counted_and_the_background_is_subtracted() {
        let stats =
            "# Commandstats\r\ncmdstat_get:calls=17,usec=40\r\ncmdstat_config|get:calls=3,usec=1\r\nother:calls=9";
        assert!((commands(stats) - 20.0).abs() < f64::EPSILON);
        let of = |redis, postgres| StoreCalls { redis, postgres };
        let during = of(120.0, 40.0).since(&of(20.0, 10.0));
        assert_eq!(during.minus_background(&of(45.0, 40.0).scaled(2.0)), (10.0, 0.0));
    }
}
