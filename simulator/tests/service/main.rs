//! Integration tests of the simulator over HTTP, each on its own port.

mod api;
mod cards;
mod merchant;
mod page;
mod stripe;
