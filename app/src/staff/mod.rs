//! Islands of people who work in a theatre, a folder a room. They are in a module of their own, which no customer
//! loads; each is called `Staff…`, which is how `frontend/static/boot.js` knows.

pub mod box_office;
pub mod door;
pub mod house_seats;
pub mod organiser;
