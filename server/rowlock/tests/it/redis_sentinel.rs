//! A master, a replica and three sentinels, as they are run for high availability.

use domain::seats::SeatState;
use reqwest::StatusCode;

use crate::redis_process::{Redis, Watching, hold_at_last};
use crate::world::{World, until};

struct Watched {
    master: Redis,
    replica: Redis,
    sentinels: Vec<Redis>,
}

impl Watched {
    async fn start() -> Self {
        let master = Redis::start(&[]).await;
        let replica = Redis::start(&[&format!("replicaof 127.0.0.1 {}", master.port)]).await;
        until("the replica follows", || async { link_is_up(&replica).await }).await;
        let monitor = format!("sentinel monitor box 127.0.0.1 {} 2", master.port);
        let settings = [&monitor, "sentinel down-after-milliseconds box 500", "sentinel failover-timeout box 3000"]
            .map(|line| line);
        let mut sentinels = vec![];
        for _ in 0..3 {
            sentinels.push(Redis::start(&settings).await);
        }
        for sentinel in &sentinels {
            until("the sentinels know each other and the replica", || async {
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
    replica.ask::<String>(&["INFO", "replication"]).await.contains("master_link_status:up")
}

async fn of_master(sentinel: &Redis, name: &str) -> String {
    let words: Vec<String> = sentinel.ask(&["SENTINEL", "MASTER", "box"]).await;
    words.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_dies_the_replica_takes_over_and_holds_go_on() {
    let mut redis = Watched::start().await;
    let world = World::start(2, &[("REDIS_URL", &redis.url())]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let mut watching = Watching::begin(&bob).await;
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);
    watching.sees(1, SeatState::Locked).await;
    let offset = || async { redis.master.ask::<u64>(&["WAIT", "1", "1000"]).await };
    until("the replica has it", || async { offset().await == 1 }).await;

    redis.master.kill().await;
    // Everybody keeps asking all the while; `hold_at_last` fails if one of them is kept waiting.
    let crowd = (0..20).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move { hold_at_last(&visitor, &[100 + number as u32]).await }
    });
    for tried in futures::future::join_all(crowd).await {
        assert_eq!(tried.status, StatusCode::CREATED, "{tried:?}");
    }
    let role: Vec<redis::Value> = redis.replica.ask(&["ROLE"]).await;
    assert_eq!(role[0], redis::Value::BulkString(b"master".to_vec()));
    let (status, hold) = ann.get(&format!("/api/v1/shows/{}/hold", ann.show)).await;
    assert_eq!((status, &hold["seats"][0]["seat"]), (StatusCode::OK, &1.into()), "the replica had it: {hold}");
    watching.sees(119, SeatState::Locked).await;

    // The old master comes back empty and believes, until the sentinels get round to it, that it still is
    // one. Nobody writes to it.
    redis.master.restart(&[]);
    redis.master.answers().await;
    let late = hold_at_last(&bob, &[7]).await;
    assert_eq!(late.status, StatusCode::CREATED, "{late:?}");
    assert_eq!(redis.master.ask::<u64>(&["DBSIZE"]).await, 0);
    watching.sees(7, SeatState::Locked).await;
    world.end().await;
}
