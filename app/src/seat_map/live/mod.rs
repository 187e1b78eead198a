//! Every seat's state, and the connection that keeps it true.

pub mod board;
pub(super) mod connection;
pub(super) mod follower;
mod without_socket;
