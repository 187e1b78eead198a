//! The heartbeat of a hub.

use std::sync::Arc;
use std::time::Duration;

use super::hub::Hub;
use crate::SeatsState;

/// How often changes go out while few are watching; a blink is longer.
const FAST_TICK: Duration = Duration::from_millis(50);
/// …and while many are.
const SLOW_TICK: Duration = Duration::from_millis(250);
/// Sockets of one show from which on ticks are slow. Between, they stretch with the square root: a tick costs
/// a write for each socket, so that the first thousand is worth a little patience already.
const MANY_READERS: usize = 10_000;
/// A hub without readers is kept this long.
const IDLE_LIFE: Duration = Duration::from_secs(30);
/// A snapshot that could not be read is asked for again this often.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Readers of some sections learn of the others this often.
const ROLL_CALL: Duration = Duration::from_secs(1);

/// Runs until the server stops or nobody has been watching for a while.
pub(super) async fn tick(state: SeatsState, hub: Arc<Hub>) {
    let (mut idle, mut since_roll_call, mut since_read) = (Duration::ZERO, Duration::ZERO, READ_AGAIN);
    loop {
        let pause = pause_for(hub.readers());
        let pausing = async {
            tokio::time::sleep(pause).await;
            if hub.is_stale() && since_read >= READ_AGAIN {
                super::refresh(&state, hub.show).await;
                since_read = Duration::ZERO;
            }
        };
        tokio::select! {
            () = state.stop.cancelled() => return hub.stop(),
            () = pausing => {}
        }
        if hub.is_stopped() {
            return;
        }
        since_read += pause;
        since_roll_call += pause;
        let roll_call = since_roll_call >= ROLL_CALL;
        if roll_call {
            since_roll_call = Duration::ZERO;
        }
        hub.announce(roll_call);
        idle = if hub.readers() == 0 { idle + pause } else { Duration::ZERO };
        if idle >= IDLE_LIFE && state.hubs.close_if_unread(&hub) {
            return;
        }
    }
}

fn pause_for(readers: usize) -> Duration {
    let share = readers.min(MANY_READERS) as f64 / MANY_READERS as f64;
    FAST_TICK + (SLOW_TICK - FAST_TICK).mul_f64(share.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stretch_from_twenty_to_four_a_second() {
        assert_eq!(pause_for(0), FAST_TICK);
        assert_eq!(pause_for(MANY_READERS), SLOW_TICK);
        assert_eq!(pause_for(1_000_000), SLOW_TICK);
        assert!(pause_for(100) < pause_for(2_500));
    }
}
