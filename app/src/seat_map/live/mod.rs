//! Every seat's state, and the connection that keeps it current.

pub mod board;
pub(super) mod connection;
pub(super) mod connection_state;
