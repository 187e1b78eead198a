//! Random calls: by a few people, for a few seats, often about the same hold.

use std::hash::{DefaultHasher, Hash, Hasher};

use domain::seats::{AreaIndex, SeatIndex};
use domain::time::MINUTE_MS;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use seats::seat_locks::{HoldLimits, HoldUpdate, LockAttempt, RequestIdentity, Selection};
use uuid::Uuid;

use super::fixture::selection;

/// Seats of the layout; calls may also name the next number.
pub const SEATS: usize = 8;
/// Areas and their capacities; calls may also name the next number.
pub const AREAS: [(AreaIndex, u32); 2] = [(0, 4), (1, 2)];
/// Owners of holds.
pub const PEOPLE: [&str; 4] = ["ann", "ben", "cat", "dan"];
/// Keys of each owner, which repeat.
const KEYS: u128 = 3;

/// A hold, by its owner and request key.
#[derive(Clone, Copy, Debug)]
pub struct HoldRef {
    pub person: usize,
    pub key: u128,
}

impl HoldRef {
    pub fn owner(self) -> &'static str {
        PEOPLE[self.person]
    }

    pub const fn hold(self) -> Uuid {
        Uuid::from_u128(1_000 + 100 * self.person as u128 + self.key)
    }
}

/// The sold part of a hold.
#[derive(Clone, Debug)]
pub struct SaleSpec {
    pub of: HoldRef,
    /// Offset from the hold's fence.
    pub fence_off: i64,
    /// `None`: everything in the hold.
    pub selection: Option<Selection>,
}

#[derive(Clone, Debug)]
pub enum StoreCall {
    Lock { flash: bool, attempts: Vec<LockAttempt> },
    Change(HoldUpdate),
    Extend { asked: RequestIdentity, of: HoldRef, owner: &'static str, by_ms: i64 },
    Mine(&'static str),
    Leave { of: HoldRef, owner: &'static str, grace_ms: i64 },
    Release { of: HoldRef, owner: &'static str },
    BeginPayment(SaleSpec),
    EndPayment(SaleSpec),
    Book(SaleSpec),
    Free(SaleSpec),
    Block { seats: Vec<SeatIndex>, blocked: bool },
    ReleaseAll,
    Adopt { of: HoldRef, selection: Selection, fence_off: i64, paying: bool, length_ms: i64 },
    Stamp { of: HoldRef, fence_off: i64 },
    Sweep,
    Snapshot,
    Load,
    Pass(i64),
}

/// Limits of a show, in whole minutes: two stores whose clocks differ by moments are compared by the minute.
pub const fn terms(flash: bool) -> HoldLimits {
    HoldLimits { per_person: 4, length_ms: 5 * MINUTE_MS, life_ms: if flash { 5 } else { 8 } * MINUTE_MS }
}

pub fn calls(most: usize) -> impl Strategy<Value = Vec<StoreCall>> {
    vec(call(), 1..most)
}

fn call() -> impl Strategy<Value = StoreCall> {
    prop_oneof![
        10 => lock(),
        5 => change(),
        2 => (of(), mostly_owner(), 0..KEYS, minutes()).prop_map(|(of, owner, key, by_ms)| {
            let owner = owner.unwrap_or(of.owner());
            // Half of it is whole minutes as well.
            let by_ms = 2 * by_ms;
            let digest = digest(&(of.hold(), by_ms));
            StoreCall::Extend { asked: RequestIdentity { id: key_of(3_000, of, key), digest }, of, owner, by_ms }
        }),
        2 => person().prop_map(StoreCall::Mine),
        2 => (of(), mostly_owner(), minutes()).prop_map(|(of, owner, grace_ms)| {
            StoreCall::Leave { of, owner: owner.unwrap_or(of.owner()), grace_ms }
        }),
        2 => (of(), mostly_owner()).prop_map(|(of, owner)| StoreCall::Release { of, owner: owner.unwrap_or(of.owner()) }),
        3 => sold().prop_map(StoreCall::BeginPayment),
        2 => sold().prop_map(StoreCall::EndPayment),
        4 => sold().prop_map(StoreCall::Book),
        3 => sold().prop_map(StoreCall::Free),
        2 => (seats(0..3), any::<bool>()).prop_map(|(seats, blocked)| StoreCall::Block { seats, blocked }),
        1 => Just(StoreCall::ReleaseAll),
        2 => (of(), some_lot(), fence_off(), any::<bool>(), minutes()).prop_map(
            |(of, selection, fence_off, paying, length_ms)| StoreCall::Adopt { of, selection, fence_off, paying, length_ms }
        ),
        1 => (of(), fence_off()).prop_map(|(of, fence_off)| StoreCall::Stamp { of, fence_off }),
        1 => Just(StoreCall::Sweep),
        1 => Just(StoreCall::Snapshot),
        1 => Just(StoreCall::Load),
        3 => minutes().prop_map(StoreCall::Pass),
    ]
}

fn lock() -> impl Strategy<Value = StoreCall> {
    let attempt = (of(), some_lot(), any::<bool>()).prop_map(|(of, selection, takes_kept)| {
        let asked = RequestIdentity { id: of.hold(), digest: digest(&format!("{selection:?} {takes_kept}")) };
        LockAttempt { asked, owner: of.owner().into(), selection, takes_kept }
    });
    (any::<bool>(), vec(attempt, 1..5)).prop_map(|(flash, attempts)| StoreCall::Lock { flash, attempts })
}

fn change() -> impl Strategy<Value = StoreCall> {
    (of(), mostly_owner(), 0..KEYS, any_lot(), any_lot()).prop_map(|(of, owner, key, add, remove)| {
        let digest = digest(&format!("{of:?} {add:?} {remove:?}"));
        let owner = owner.unwrap_or(of.owner()).into();
        StoreCall::Change(HoldUpdate {
            asked: RequestIdentity { id: key_of(2_000, of, key), digest },
            hold: of.hold(),
            owner,
            add,
            remove,
        })
    })
}

fn key_of(kind: u128, of: HoldRef, key: u128) -> Uuid {
    Uuid::from_u128(kind + 100 * of.person as u128 + key)
}

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn person() -> impl Strategy<Value = &'static str> {
    select(PEOPLE.to_vec())
}

fn of() -> impl Strategy<Value = HoldRef> {
    (0..PEOPLE.len(), 0..KEYS).prop_map(|(person, key)| HoldRef { person, key })
}

/// `None`: the owner; rarely another person.
fn mostly_owner() -> impl Strategy<Value = Option<&'static str>> {
    option::weighted(0.1, person())
}

fn minutes() -> impl Strategy<Value = i64> {
    (0..=6_i64).prop_map(|minutes| minutes * MINUTE_MS)
}

/// Mostly zero.
fn fence_off() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0), 1 => -2..=2_i64]
}

fn sold() -> impl Strategy<Value = SaleSpec> {
    let part = (seats(0..4), areas(2)).prop_map(|(seats, places)| selection(&seats, &places));
    (of(), fence_off(), option::weighted(0.3, part)).prop_map(|(of, fence_off, selection)| SaleSpec {
        of,
        fence_off,
        selection,
    })
}

fn seats(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<SeatIndex>> {
    let any_seat = prop_oneof![20 => 0..SEATS as SeatIndex, 1 => Just(SEATS as SeatIndex)];
    btree_set(any_seat, count).prop_map(|seats| seats.into_iter().collect())
}

fn areas(below: AreaIndex) -> impl Strategy<Value = Vec<(AreaIndex, u32)>> {
    let any_area = prop_oneof![15 => 0..2.min(below), 1 => 0..below];
    btree_map(any_area, 1..4_u32, 0..3).prop_map(|places| places.into_iter().collect())
}

fn any_lot() -> impl Strategy<Value = Selection> {
    (seats(0..4), option::weighted(0.3, areas(3)))
        .prop_map(|(seats, places)| selection(&seats, &places.unwrap_or_default()))
}

/// A selection that is not empty.
fn some_lot() -> impl Strategy<Value = Selection> {
    any_lot().prop_map(|any| if any.is_empty() { selection(&[0], &[]) } else { any })
}
