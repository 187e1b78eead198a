//! Fault injection: each effect of each saga fails, crashes after it was done, and runs twice; then the books are
//! checked.
//!
//! Only the sagas ([`sagas`]) and the channel of each effect ([`injector::CHANNELS`]) are listed by hand. A run without
//! faults finds the effects of a saga, once for all tests. An effect of the schema that no saga has, or without a known
//! channel, fails first.

pub mod gateway_proxy;
pub mod injector;
pub mod mail_server;
mod outbox_faults;
mod redis_proxy;
mod saga_runner;
mod sagas;

use std::collections::BTreeSet;

use injector::{CHANNELS, Channel, EffectFault};
use saga_runner::{Case, SagaRunner};
use sagas::Saga;
use strum::VariantArray;
use tokio::sync::OnceCell;

/// The effects of each saga and their channels, in the order of the sagas.
type SagaEffects = Vec<Vec<(&'static str, Channel)>>;

/// The first test finds the effects in a run without faults, and the others use them.
static EFFECTS: OnceCell<SagaEffects> = OnceCell::const_new();
static EFFECTS_WITH_TWO_GATEWAYS: OnceCell<SagaEffects> = OnceCell::const_new();

async fn assert_every_effect_survives(fault: EffectFault) {
    let with_one_gateway = async {
        let runner = SagaRunner::open().await;
        let all_effects = runner.outbox_faults.all_effects().await;
        let mut sagas = Saga::VARIANTS.to_vec();
        sagas.retain(|saga| !Saga::WITH_TWO_GATEWAYS.contains(saga));
        let covered = run_with_faults(&runner, &sagas, &EFFECTS, fault, |_| true).await;
        runner.end().await;
        (all_effects, covered)
    };
    // Other effects behave the same with a second gateway.
    let with_two_gateways = async {
        let runner = SagaRunner::open_with_two_gateways().await;
        let (sagas, effects) = (&Saga::WITH_TWO_GATEWAYS, &EFFECTS_WITH_TWO_GATEWAYS);
        let covered = run_with_faults(&runner, sagas, effects, fault, |way| way == Channel::Gateway).await;
        runner.end().await;
        covered
    };
    // Concurrently: with two gateways the cases take turns, and mostly wait for timers of their server.
    let ((all_effects, mut covered), covered_by_two) = tokio::join!(with_one_gateway, with_two_gateways);
    covered.extend(covered_by_two);
    for effect in all_effects {
        assert!(covered.contains(find_effect(&effect).0), "no saga has the effect {effect}: add one to sagas.rs");
    }
}

/// Runs these sagas with the fault at each effect with a matching channel. Returns all their effects.
async fn run_with_faults(
    runner: &SagaRunner,
    sagas: &[Saga],
    effects: &OnceCell<SagaEffects>,
    fault: EffectFault,
    is_asked: fn(Channel) -> bool,
) -> BTreeSet<&'static str> {
    let effects = effects.get_or_init(|| find_effects_of_sagas(runner, sagas)).await;
    let mut cases = Vec::new();
    for (saga, requested) in sagas.iter().zip(effects) {
        let struck = requested.iter().filter(|(_, way)| fault.is_possible(*way) && is_asked(*way));
        cases.extend(struck.map(|(effect, _)| Case { saga: *saga, strike: Some((*effect, fault)) }));
    }
    let bookings = runner.run(&cases).await;
    runner.wait_until_balanced().await;
    assert_eq!(bookings.len(), cases.len());
    assert!(bookings.len() >= 2 * sagas.len(), "most sagas have several effects: {cases:?}");
    effects.iter().flatten().map(|(effect, _)| *effect).collect()
}

/// Runs these sagas without faults and returns their effects.
async fn find_effects_of_sagas(runner: &SagaRunner, sagas: &[Saga]) -> SagaEffects {
    let undisturbed: Vec<Case> = sagas.iter().map(|saga| Case { saga: *saga, strike: None }).collect();
    let bookings = runner.run(&undisturbed).await;
    runner.wait_until_balanced().await;

    let mut effects = Vec::new();
    for (saga, booking) in sagas.iter().zip(bookings) {
        let requested = runner.outbox_faults.requested_effects(booking).await;
        assert!(!requested.is_empty(), "{saga:?} has no effect");
        effects.push(requested.iter().map(|effect| find_effect(effect)).collect());
    }
    effects
}

fn find_effect(name: &str) -> (&'static str, Channel) {
    let found = CHANNELS.iter().copied().find(|(effect, _)| *effect == name);
    found.unwrap_or_else(|| panic!("how does the effect {name} leave the server? Add it to CHANNELS in injector.rs"))
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_effect_is_retried() {
    assert_every_effect_survives(EffectFault::Refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_with_a_lost_answer_happens_once() {
    assert_every_effect_survives(EffectFault::AnswerLost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_dies_before_the_answer_leaves_the_effect_to_another() {
    assert_every_effect_survives(EffectFault::KilledBeforeAnswer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_dies_before_marking_the_effect_done_leaves_it_to_another() {
    assert_every_effect_survives(EffectFault::KilledBeforeMark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_whose_mark_is_lost_happens_once() {
    assert_every_effect_survives(EffectFault::MarkLost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_that_runs_twice_happens_once() {
    assert_every_effect_survives(EffectFault::Repeated).await;
}
