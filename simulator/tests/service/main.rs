//! The simulator as its merchants and payers meet it: over HTTP, on a port of its own.

mod api;
mod cards;
mod merchant;
mod page;
mod stripe;
