//! One module a page: the struct it is made from and its view.
//!
//! Not here: loading (the server fills the structs) and anything that lives in the browser (islands).

pub mod not_found;
