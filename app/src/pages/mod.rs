//! One module a page: the struct it is made from and its view.
//!
//! Not here: loading (the server fills the structs) and anything that lives in the browser (islands).

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
