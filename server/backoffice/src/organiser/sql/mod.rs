//! Queries of organisers, one file per subject. Only these and the demo loader write screens, shows and films.

pub(super) mod layouts;
pub(super) mod moving;
pub(super) mod programme;
pub(super) mod screens;
pub(super) mod shows;
pub(super) mod standing;
pub(super) mod theatres;
