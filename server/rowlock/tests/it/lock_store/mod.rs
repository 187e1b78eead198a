//! Rules of every lock store, tested in memory, in Redis, and in Redis with memory as its shadow, which must count no
//! divergence.
//!
//! Tests move the time, in Redis too: there every expiry is moved closer. So no test waits, except for one about Redis'
//! own expiry.

/// Tests of any store, each run on all of them.
macro_rules! on_every_store {
    ($($(#[$note:meta])* async fn $name:ident($fixture:ident: &StoreFixture) $body:block)*) => { $(
        mod $name {
            use super::*;

            $(#[$note])*
            async fn check($fixture: &StoreFixture) $body

            #[tokio::test]
            async fn in_memory() {
                let fixture = StoreFixture::in_memory().await;
                check(&fixture).await;
                fixture.close().await;
            }

            #[tokio::test]
            async fn in_redis() {
                let fixture = StoreFixture::in_redis().await;
                check(&fixture).await;
                fixture.close().await;
            }

            #[tokio::test]
            async fn in_redis_with_memory_as_its_shadow() {
                let fixture = StoreFixture::in_both().await;
                check(&fixture).await;
                fixture.close().await;
            }
        }
    )* };
}

mod announcements;
mod expiry;
mod fixture;
mod grants;
mod loading;
mod random;
mod refusals;
mod retries;
mod sales;
mod shadowing;
mod staff;
