//! The tick loop of a hub.

use std::sync::Arc;
use std::time::Duration;

use super::hub::Hub;
use crate::SeatsState;

/// The tick with few readers.
const FAST_TICK: Duration = Duration::from_millis(50);
/// The tick with [`MANY_READERS`] readers.
const SLOW_TICK: Duration = Duration::from_millis(250);
/// Sockets of one show from which on ticks are slow. Below, the tick grows with the square root of their number: a tick
/// costs a write per socket, so the first thousand sockets already slow it noticeably.
const MANY_READERS: usize = 10_000;
/// A hub without readers closes after this long.
const IDLE_LIFE: Duration = Duration::from_secs(30);
/// Pause between two reads of a snapshot after a failure.
const READ_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Period in which readers of some sections get the version and the overview, even without changes in their sections.
const IDLE_VIEW_PERIOD: Duration = Duration::from_secs(1);

/// Runs until the server stops or the hub has had no readers for [`IDLE_LIFE`].
pub(super) async fn tick(state: SeatsState, hub: Arc<Hub>) {
    let (mut idle, mut since_idle_views, mut since_read) = (Duration::ZERO, Duration::ZERO, READ_RETRY_PAUSE);
    loop {
        let pause = pause_for(hub.readers());
        let pausing = async {
            tokio::time::sleep(pause).await;
            if hub.is_stale() && since_read >= READ_RETRY_PAUSE {
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
        since_idle_views += pause;
        let includes_idle_views = since_idle_views >= IDLE_VIEW_PERIOD;
        if includes_idle_views {
            since_idle_views = Duration::ZERO;
        }
        hub.publish_tick(includes_idle_views);
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
