//! What every lock store does, tried on each: in memory, in Redis, and on Redis with memory as its shadow,
//! which must not have counted a single difference in the end.
//!
//! Time passes when a test says so, in Redis too: there everything that has an end is moved towards now. So
//! nothing here waits, but for one test of what Redis does when it is left alone.

/// Tests that hold for any store, each run on all of them.
macro_rules! on_every_store {
    ($($(#[$note:meta])* async fn $name:ident($house:ident: &House) $body:block)*) => { $(
        mod $name {
            use super::*;

            $(#[$note])*
            async fn check($house: &House) $body

            #[tokio::test]
            async fn in_memory() {
                let house = House::in_memory().await;
                check(&house).await;
                house.close().await;
            }

            #[tokio::test]
            async fn in_redis() {
                let house = House::in_redis().await;
                check(&house).await;
                house.close().await;
            }

            #[tokio::test]
            async fn in_redis_with_memory_as_its_shadow() {
                let house = House::in_both().await;
                check(&house).await;
                house.close().await;
            }
        }
    )* };
}

mod announcements;
mod areas;
mod batches;
mod changes;
mod grants;
mod house;
mod lapses;
mod loading;
mod losses;
mod payments;
mod random;
mod random_calls;
mod redis_house;
mod retries;
mod sales;
mod shadowing;
mod staff;
mod times;
