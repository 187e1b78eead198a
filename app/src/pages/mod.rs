//! One module per page: the struct with its data, and its view.
//!
//! The server loads the data and fills the structs. Islands have their own modules.

pub mod accounts;
pub mod booking;
pub mod booking_by_mail;
pub mod city;
pub mod film;
pub mod home;
pub mod listing;
pub mod not_found;
pub mod offer;
pub mod poster;
pub mod problems;
pub mod search;
pub mod show;
pub mod theatre;
pub mod ticket;
pub mod waiting_room;
