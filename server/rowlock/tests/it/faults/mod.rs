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
use wires::{Fault, WAYS, Way};

/// Plays every saga, and then every saga again with this fault at each of its effects.
async fn every_effect_of_every_saga_survives(fault: Fault) {
    let stage = Stage::open().await;
    let all_effects = stage.notes.all_effects().await;
    let mut covered = survive(&stage, &Saga::WITH_ONE_GATEWAY, fault, |_| true).await;
    stage.end().await;
    // What is no gateway's business goes as it does with one.
    let stage = Stage::open_with_two_gateways().await;
    covered.extend(survive(&stage, &Saga::WITH_TWO_GATEWAYS, fault, |way| way == Way::Gateway).await);
    stage.end().await;
    for effect in all_effects {
        assert!(covered.contains(known(&effect).0), "no saga has the effect {effect}: add one to sagas.rs");
    }
}

/// Plays these sagas undisturbed, and then with the fault at each of their effects that take such a way; all
/// their effects.
async fn survive(stage: &Stage, sagas: &[Saga], fault: Fault, is_asked: fn(Way) -> bool) -> BTreeSet<&'static str> {
    let undisturbed: Vec<Case> = sagas.iter().map(|saga| Case { saga: *saga, strike: None }).collect();
    let bookings = stage.play(&undisturbed).await;
    stage.balance().await;

    let (mut cases, mut covered) = (Vec::new(), BTreeSet::new());
    for (case, booking) in undisturbed.iter().zip(bookings) {
        let wished = stage.notes.wished(booking).await;
        assert!(!wished.is_empty(), "{:?} has no effect", case.saga);
        covered.extend(wished.iter().map(|effect| known(effect).0));
        let wished = wished.iter().map(|effect| known(effect));
        let struck = wished.filter(|(_, way)| fault.is_possible(*way) && is_asked(*way));
        cases.extend(struck.map(|(effect, _)| Case { strike: Some((effect, fault)), ..*case }));
    }
    let bookings = stage.play(&cases).await;
    stage.balance().await;
    assert_eq!(bookings.len(), cases.len());
    assert!(bookings.len() >= 2 * sagas.len(), "most sagas have several effects: {cases:?}");
    covered
}

/// The effect of that name, and its way.
fn known(name: &str) -> (&'static str, Way) {
    let known = WAYS.iter().copied().find(|(effect, _)| *effect == name);
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
