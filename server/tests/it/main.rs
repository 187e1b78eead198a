//! The server against real Redis and Postgres, as real processes, from outside.
//!
//! `DATABASE_URL` and `REDIS_URL` say where those are (`cargo xtask test` sets them); every test has a
//! database and a Redis prefix of its own.

mod bad_input;
mod catalogue;
mod holds;
mod live;
mod sale;
mod sql_guards;
mod storm;
mod world;
