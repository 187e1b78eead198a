//! The server against real Redis and Postgres, as real processes, from outside.
//!
//! `DATABASE_URL` and `REDIS_URL` say where those are (`cargo xtask test` sets them); every test has a
//! database and a Redis prefix of its own. Those that break Redis start their own, `REDIS_SERVER` or the
//! `redis-server` that is found.

mod accounts;
mod areas;
mod authorisation;
mod bad_input;
mod bad_webhooks;
mod books;
mod box_office;
mod budgets;
mod buyer;
mod cancel;
mod cancel_show;
mod catalogue;
mod cdn;
mod checking;
mod claims_in_parts;
mod commits;
mod door;
mod email_codes;
mod fairness;
mod faults;
mod files;
mod first_look;
mod friend;
mod gateway_away;
mod gateways;
mod holds;
mod idempotency;
mod idempotency_stores;
mod instruments;
mod kills;
mod languages;
mod late_money;
mod live;
mod lock_store;
mod organiser;
mod parked;
mod ports;
mod postgres_process;
mod puzzles;
mod reconciling;
mod redis_cluster;
mod redis_process;
mod redis_sentinel;
mod redis_single;
mod regions;
mod remembered;
mod replicas;
mod reports;
mod sale;
mod settings;
mod shadow;
mod shipping;
mod sql_guards;
mod standby;
mod storm;
mod systems;
mod telemetry;
mod ticket_files;
mod traces;
mod waiting_list;
mod waiting_room;
mod world;
