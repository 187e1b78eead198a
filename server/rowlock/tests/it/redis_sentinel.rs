//! A Redis master, a replica and three sentinels, as in high availability.

use domain::seats::SeatState;
use reqwest::StatusCode;

use crate::redis_process::{LiveMap, Redis, hold_with_retries};
use crate::world::{World, wait_until};

struct SentinelSetup {
    master: Redis,
    replica: Redis,
    sentinels: Vec<Redis>,
}

impl SentinelSetup {
    async fn start() -> Self {
        let master = Redis::start(&[]).await;
        let replica = Redis::start(&[&format!("replicaof 127.0.0.1 {}", master.port)]).await;
        wait_until("the replica follows", || async { link_is_up(&replica).await }).await;
        let monitor = format!("sentinel monitor box 127.0.0.1 {} 2", master.port);
        let settings = [&monitor, "sentinel down-after-milliseconds box 500", "sentinel failover-timeout box 3000"]
            .map(|line| line);
        let mut sentinels = vec![];
        for _ in 0..3 {
            sentinels.push(Redis::start(&settings).await);
        }
        for sentinel in &sentinels {
            wait_until("the sentinels know each other and the replica", || async {
                let text = |name| async move { of_master(sentinel, name).await };
                text("num-other-sentinels").await == "2" && text("num-slaves").await == "1"
            })
            .await;
        }
        Self { master, replica, sentinels }
    }

    fn url(&self) -> String {
        let ports: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("redis+sentinel://{}/box", ports.join(","))
    }
}

async fn link_is_up(replica: &Redis) -> bool {
    replica.command::<String>(&["INFO", "replication"]).await.contains("master_link_status:up")
}

async fn of_master(sentinel: &Redis, name: &str) -> String {
    let words: Vec<String> = sentinel.command(&["SENTINEL", "MASTER", "box"]).await;
    words.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_continue_at_the_replica_after_the_master_dies() {
    let mut redis = SentinelSetup::start().await;
    let world = World::start(2, &[("REDIS_URL", &redis.url())]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let mut watching = LiveMap::open(&bob).await;
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);
    watching.wait_for_seat(1, SeatState::Locked).await;
    let offset = || async { redis.master.command::<u64>(&["WAIT", "1", "1000"]).await };
    wait_until("the replica has the hold", || async { offset().await == 1 }).await;

    redis.master.kill().await;
    // Visitors retry meanwhile; `hold_with_retries` fails if an answer is too late.
    let crowd = (0..20).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move { hold_with_retries(&visitor, &[100 + number as u32]).await }
    });
    for tried in futures::future::join_all(crowd).await {
        assert_eq!(tried.status, StatusCode::CREATED, "{tried:?}");
    }
    let role: Vec<redis::Value> = redis.replica.command(&["ROLE"]).await;
    assert_eq!(role[0], redis::Value::BulkString(b"master".to_vec()));
    let (status, hold) = ann.get(&format!("/api/v1/shows/{}/hold", ann.show)).await;
    assert_eq!((status, &hold["seats"][0]["seat"]), (StatusCode::OK, &1.into()), "the replica had the hold: {hold}");
    watching.wait_for_seat(119, SeatState::Locked).await;

    // The old master restarts empty as a master, until the sentinels reconfigure it. No server writes to it.
    redis.master.restart(&[]);
    redis.master.wait_until_ready().await;
    let late = hold_with_retries(&bob, &[7]).await;
    assert_eq!(late.status, StatusCode::CREATED, "{late:?}");
    assert_eq!(redis.master.command::<u64>(&["DBSIZE"]).await, 0);
    watching.wait_for_seat(7, SeatState::Locked).await;
}
