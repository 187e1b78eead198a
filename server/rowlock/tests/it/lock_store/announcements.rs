//! A store's announcements match the changes of its map.

use std::collections::BTreeMap;

use domain::seats::AreaIndex;
use platform::redis_link::{Subscriber, SubscriptionEvent};
use seats::seat_locks::{Announcement, MapSnapshot, MemoryLocks, SeatLocks};
use tokio::sync::broadcast::Receiver;
use uuid::Uuid;

use super::fixture::{RedisFixture, TERMS, attempt, clock, known, memory, selection};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedChange {
    pub epoch: u64,
    pub version: u64,
    /// New states of seats and areas, the last one of each; `None` if the map was built.
    pub changes: Option<BTreeMap<String, u32>>,
}

pub enum AnnouncementListener {
    Memory(Uuid, Receiver<Announcement>),
    Redis(Subscriber),
}

impl AnnouncementListener {
    pub fn on_memory(store: &MemoryLocks, show: Uuid) -> Self {
        Self::Memory(show, store.announcements())
    }

    pub async fn on_redis(redis: &RedisFixture, show: Uuid) -> Self {
        Self::Redis(redis.announcements(show).await)
    }

    /// Receives everything up to this version.
    pub async fn until(&mut self, version: u64) -> Vec<AnnouncedChange> {
        let mut steps = Vec::<AnnouncedChange>::new();
        while steps.last().is_none_or(|step| step.version < version) {
            let next = tokio::time::timeout(crate::world::TEST_TIMEOUT, self.next()).await;
            steps.push(next.unwrap_or_else(|_| panic!("no announcement of version {version} after {steps:?}")));
        }
        steps
    }

    async fn next(&mut self) -> AnnouncedChange {
        match self {
            Self::Memory(show, receiver) => loop {
                let announcement = receiver.recv().await.expect("an announcement");
                if announcement.show == *show {
                    return read(&announcement.text);
                }
            },
            Self::Redis(subscription) => {
                let SubscriptionEvent::Message { payload, .. } = subscription.next_event().await else {
                    panic!("the subscription was lost");
                };
                read(std::str::from_utf8(&payload).expect("text"))
            }
        }
    }
}

fn read(text: &str) -> AnnouncedChange {
    let parts: Vec<&str> = text.splitn(3, ';').collect();
    let change = |change: &str| {
        let (what, became) = change.split_once('=').expect("a change");
        (what.to_owned(), became.parse().expect("a number"))
    };
    AnnouncedChange {
        epoch: parts[0].parse().expect("an epoch"),
        version: parts[1].parse().expect("a version"),
        changes: (parts[2] != "*").then(|| parts[2].split(',').map(change).collect()),
    }
}

/// Applies these steps to a map. They must follow each other without a gap.
pub fn after(mut map: MapSnapshot, steps: &[AnnouncedChange]) -> MapSnapshot {
    let mut seats = map.map.to_vec();
    for step in steps {
        assert_eq!((step.epoch, step.version), (map.epoch, map.version + 1), "one step after the other");
        map.version = step.version;
        for (what, became) in step.changes.as_ref().expect("changes") {
            match what.strip_prefix('a') {
                Some(area) => {
                    let area: AreaIndex = area.parse().expect("an area");
                    map.areas.iter_mut().find(|(known, _)| *known == area).expect("a known area").1 = *became;
                }
                None => seats[what.parse::<usize>().expect("a seat")] = u8::try_from(*became).expect("a state"),
            }
        }
    }
    MapSnapshot { map: seats.into(), ..map }
}

async fn check_announcements(store: &dyn SeatLocks, show: Uuid, mut listener: AnnouncementListener) {
    store.load(show, &known()).await.expect("the map is loaded");
    store.load(show, &known()).await.expect("the map exists");
    let before = store.snapshot(show).await.expect("a snapshot");
    let take = |owner, selection| store_lock(store, show, owner, selection);
    take("ann", selection(&[1, 2], &[(0, 2)])).await;
    take("ben", selection(&[2], &[])).await;
    store.block(show, &[4], true).await.expect("an answer").expect("the seat is free");
    let now = store.snapshot(show).await.expect("a snapshot");
    assert_eq!(now.version, before.version + 2, "a refusal is no step");

    let steps = listener.until(now.version).await;
    assert_eq!(steps[0], AnnouncedChange { epoch: before.epoch, version: before.version, changes: None });
    assert_eq!(steps[1].changes, Some([("1".into(), 1), ("2".into(), 1), ("a0".into(), 3)].into()));
    assert_eq!(steps[2].changes, Some([("4".into(), 3)].into()));
    assert_eq!(after(before, &steps[1..]), now);
    store.forget(show).await.expect("the show is forgotten");
}

async fn store_lock(store: &dyn SeatLocks, show: Uuid, owner: &str, selection: seats::seat_locks::Selection) {
    store.lock(show, TERMS, &[attempt(owner, selection)]).await.expect("an answer");
}

#[tokio::test]
async fn memory_announces_the_built_map_and_every_later_change() {
    let (store, show) = (memory(&clock()), platform::ids::new_id());
    let listener = AnnouncementListener::on_memory(&store, show);
    check_announcements(&store, show, listener).await;
}

#[tokio::test]
async fn redis_announces_the_built_map_and_every_later_change() {
    let (redis, show) = (RedisFixture::open().await, platform::ids::new_id());
    let listener = AnnouncementListener::on_redis(&redis, show).await;
    check_announcements(&redis.store().await, show, listener).await;
}
