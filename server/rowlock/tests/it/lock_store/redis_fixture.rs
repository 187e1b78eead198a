//! Direct changes to Redis: time passes, keys are lost, an earlier state is restored.

use platform::redis_link::{Link, Subscriber};
use redis::aio::MultiplexedConnection;
use seats::seat_locks::{Keys, RedisLocks, channel_of};
use uuid::Uuid;

/// Moves every expiry of a show closer by ARGV[1] milliseconds.
const PASS: &str = "
    local holds, expiry = KEYS[2], KEYS[3]
    local function earlier(at) return string.format('%d', tonumber(at) - tonumber(ARGV[1])) end
    local list = redis.call('HGETALL', holds)
    for at = 1, #list, 2 do
      local expires, original, latest, rest = string.match(list[at + 1], '^(%d+):(%d+):(%d+):(.*)$')
      local moved = { earlier(expires), earlier(original), earlier(latest), rest }
      redis.call('HSET', holds, list[at], table.concat(moved, ':'))
      redis.call('ZADD', expiry, earlier(expires), list[at])
    end
    for key = 10, 11 do
      local stored = redis.call('HGETALL', KEYS[key])
      for at = 1, #stored, 2 do
        local digest, expires, latest, rest = string.match(stored[at + 1], '^(%x+):(%d+):(%d+):(.*)$')
        if digest then
          local moved = { digest, earlier(expires), earlier(latest), rest }
          redis.call('HSET', KEYS[key], stored[at], table.concat(moved, ':'))
        end
      end
    end
    local lapses = redis.call('HGETALL', KEYS[12])
    for at = 1, #lapses, 2 do
      local count, last = string.match(lapses[at + 1], '^(%d+):(%d+)$')
      redis.call('HSET', KEYS[12], lapses[at], count .. ':' .. earlier(last))
    end";

/// Redis, and the keys of one test in it.
#[derive(Clone)]
pub struct RedisFixture {
    url: String,
    prefix: String,
    link: Link,
    connection: MultiplexedConnection,
}

/// Redis' state of a show at one moment.
pub struct Backup(Vec<(String, Option<Vec<u8>>)>);

impl RedisFixture {
    pub async fn open() -> Self {
        let url = std::env::var("REDIS_URL").expect("REDIS_URL; `cargo xtask test` sets it");
        let client = redis::Client::open(url.as_str()).expect("REDIS_URL is an address");
        let connection = client.get_multiplexed_async_connection().await.expect("Redis answers");
        let link = Link::connect(&url).await.expect("Redis answers");
        Self { url, link, prefix: format!("t{}:", platform::ids::new_id().simple()), connection }
    }

    pub async fn store(&self) -> RedisLocks {
        rowlock::start::lock_store(&self.url, &self.prefix).await.expect("Redis answers").1
    }

    pub async fn pass(&self, show: Uuid, ms: i64) {
        let keys = Keys::of(&self.prefix, show).0;
        let mut command = redis::cmd("EVAL");
        command.arg(PASS).arg(keys.len()).arg(&keys).arg(ms);
        command.query_async::<()>(&mut self.connection.clone()).await.expect("time passes");
    }

    pub async fn backup(&self, show: Uuid) -> Backup {
        let mut kept = Vec::new();
        for key in Keys::of(&self.prefix, show).0 {
            let dump: Option<Vec<u8>> = redis::cmd("DUMP")
                .arg(&key)
                .query_async(&mut self.connection.clone())
                .await
                .expect("the key is dumped");
            kept.push((key, dump));
        }
        Backup(kept)
    }

    /// Restores an earlier state, as a failover that lost the last writes does.
    pub async fn fall_back(&self, to: &Backup) {
        for (key, dump) in &to.0 {
            let command = match dump {
                Some(dump) => redis::cmd("RESTORE").arg(key).arg(0).arg(dump).arg("REPLACE").take(),
                None => redis::cmd("DEL").arg(key).take(),
            };
            command.exec_async(&mut self.connection.clone()).await.expect("the key is restored");
        }
    }

    /// Deletes a show, as if Redis had lost its disk.
    pub async fn lose(&self, show: Uuid) {
        let keys = Keys::of(&self.prefix, show).0;
        redis::cmd("DEL").arg(&keys).exec_async(&mut self.connection.clone()).await.expect("keys are deleted");
    }

    /// Deletes the stored answers of requests.
    pub async fn forget_answers(&self, show: Uuid) {
        let [.., today, before, _] = Keys::of(&self.prefix, show).0;
        let mut command = redis::cmd("DEL");
        command.arg(today).arg(before).exec_async(&mut self.connection.clone()).await.expect("keys are deleted");
    }

    /// Number of keys of a show.
    pub async fn keys_of(&self, show: Uuid) -> u64 {
        let keys = Keys::of(&self.prefix, show).0;
        redis::cmd("EXISTS").arg(&keys).query_async(&mut self.connection.clone()).await.expect("keys are counted")
    }

    /// Subscribes to the show's announcements.
    pub async fn announcements(&self, show: Uuid) -> Subscriber {
        let (done, ready) = tokio::sync::oneshot::channel();
        let mut subscriber = self.link.subscriber();
        subscriber.subscribe(&channel_of(&self.prefix, show), done);
        ready.await.expect("the subscription is ready");
        subscriber
    }
}
