//! Every seat's state, and the connection that keeps it true.

pub mod board;
pub(super) mod connection;
pub(super) mod connection_state;
pub(super) mod follower;
pub(super) mod map_changes;
pub(super) mod without_socket;
