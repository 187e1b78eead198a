//! The server against real Redis and Postgres, as real processes, from outside.
//!
//! `DATABASE_URL` and `REDIS_URL` say where those are (`cargo xtask test` sets them); every test has a
//! database and a Redis prefix of its own. Those that break Redis start their own, `REDIS_SERVER` or the
//! `redis-server` that is found.

mod bad_input;
mod bad_webhooks;
mod catalogue;
mod commits;
mod gateways;
mod holds;
mod live;
mod lock_store;
mod redis_cluster;
mod redis_process;
mod redis_sentinel;
mod redis_single;
mod sale;
mod shadow;
mod sql_guards;
mod storm;
mod world;
