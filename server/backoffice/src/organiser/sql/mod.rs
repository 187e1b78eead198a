//! Queries of what organisers do, a file a subject. They alone write screens, shows and films besides the demo's loader.

pub(super) mod layouts;
pub(super) mod moving;
pub(super) mod programme;
pub(super) mod screens;
pub(super) mod shows;
pub(super) mod standing;
pub(super) mod theatres;
