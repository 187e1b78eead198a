//! Each effect of each saga is made to fail, to crash after it was done, and to run twice; then the books
//! are verified.
//!
//! Nothing is listed by hand but the sagas ([`sagas`]) and the way each effect takes ([`wires::WAYS`]).
//! Which effects a saga has is found out by playing it once undisturbed; an effect of the schema that no
//! saga has, or that takes no known way, fails here before anything else does.

mod mail_wire;
mod notes;
mod redis_wire;
mod sagas;
mod stage;
pub mod till;
pub mod wires;

use std::collections::BTreeSet;

use sagas::Saga;
use stage::{Case, Stage};
use wires::{Fault, WAYS};

/// Plays every saga, and then every saga again with this fault at each of its effects.
async fn every_effect_of_every_saga_survives(fault: Fault) {
    let stage = Stage::open().await;
    let undisturbed = Saga::ALL.map(|saga| Case { saga, strike: None });
    let bookings = stage.play(&undisturbed).await;
    stage.balance().await;

    let mut cases = Vec::new();
    for (case, booking) in undisturbed.iter().zip(bookings) {
        let wished = stage.notes.wished(booking).await;
        assert!(!wished.is_empty(), "{:?} has no effect", case.saga);
        cases.extend(wished.iter().map(|effect| Case { strike: Some((known(effect), fault)), ..*case }));
    }
    let covered: BTreeSet<&str> = cases.iter().filter_map(|case| case.strike).map(|(effect, _)| effect).collect();
    for effect in stage.notes.all_effects().await {
        assert!(covered.contains(known(&effect)), "no saga has the effect {effect}: add one to sagas.rs");
    }
    let bookings = stage.play(&cases).await;
    stage.balance().await;
    assert_eq!(bookings.len(), cases.len());
    assert!(bookings.len() > 2 * Saga::ALL.len(), "most sagas have several effects: {cases:?}");
    stage.end().await;
}

/// The effect of that name.
fn known(name: &str) -> &'static str {
    let known = WAYS.iter().map(|(effect, _)| *effect).find(|effect| *effect == name);
    known.unwrap_or_else(|| panic!("how does the effect {name} leave the server? Add it to WAYS in wires.rs"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_fails_is_done_later() {
    every_effect_of_every_saga_survives(Fault::Refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_whose_answer_is_lost_happens_once() {
    every_effect_of_every_saga_survives(Fault::AnswerLost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_before_it_hears_of_an_effect_leaves_it_to_the_next() {
    every_effect_of_every_saga_survives(Fault::DiesBeforeHearing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_before_it_notes_an_effect_leaves_it_to_the_next() {
    every_effect_of_every_saga_survives(Fault::DiesBeforeNoting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_whose_note_is_lost_happens_once() {
    every_effect_of_every_saga_survives(Fault::NoteLost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_runs_twice_happens_once() {
    every_effect_of_every_saga_survives(Fault::Twice).await;
}
