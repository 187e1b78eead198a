//! Single flight: concurrent requests of this process with one key share one result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Answer;
use super::intent::IntentId;
use crate::ApiResult;

/// Maximum number of running keys in one process; further requests are refused.
const MAX_FLIGHTS: usize = 16_384;

#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// The leader looks for an existing answer.
    Looking,
    /// The leader does the work; other replicas can see that.
    Working,
    /// The result.
    Done(ApiResult<Answer>),
}

#[derive(Debug)]
struct Flight {
    request_hash: [u8; 32],
    progress: watch::Receiver<Progress>,
}

/// Keys that are running in this process.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<IntentId, Flight>>>);

#[derive(Debug)]
pub(super) enum FlightRole {
    /// The first request: does the work, and receives the result like the others.
    Leader(FlightLeader, watch::Receiver<Progress>),
    /// The same request is running.
    Follower(watch::Receiver<Progress>),
    /// Another request is running under this key.
    KeyReused,
    /// Too many keys are running.
    Full,
}

impl Flights {
    /// Joins the flight of a key, or starts it.
    pub(super) fn join(&self, id: IntentId, request_hash: [u8; 32]) -> FlightRole {
        let mut flights = self.lock();
        let is_full = flights.len() >= MAX_FLIGHTS;
        match flights.entry(id) {
            Entry::Occupied(flight) if flight.get().request_hash == request_hash => {
                FlightRole::Follower(flight.get().progress.clone())
            }
            Entry::Occupied(_) => FlightRole::KeyReused,
            Entry::Vacant(_) if is_full => FlightRole::Full,
            Entry::Vacant(place) => {
                let (sender, progress) = watch::channel(Progress::Looking);
                place.insert(Flight { request_hash, progress: progress.clone() });
                FlightRole::Leader(FlightLeader { flights: self.clone(), id, sender }, progress)
            }
        }
    }

    /// True if that key is running in this process.
    pub(super) fn contains(&self, id: &IntentId) -> bool {
        self.lock().contains_key(id)
    }

    // Held for a map operation only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<IntentId, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by the leader. When it is dropped the key is free again, also after a panic.
#[derive(Debug)]
pub(super) struct FlightLeader {
    flights: Flights,
    id: IntentId,
    sender: watch::Sender<Progress>,
}

impl FlightLeader {
    pub(super) fn begin_work(&self) {
        self.sender.send_replace(Progress::Working);
    }

    /// Ends the flight with this result for all followers.
    pub(super) fn publish(self, result: ApiResult<Answer>) {
        self.sender.send_replace(Progress::Done(result));
    }
}

impl Drop for FlightLeader {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: IntentId = [1; 32];

    #[tokio::test]
    async fn a_second_request_shares_the_result_of_the_first() {
        let flights = Flights::default();
        let FlightRole::Leader(lead, _) = flights.join(ID, [7; 32]) else { panic!("it is the first") };
        let FlightRole::Follower(mut progress) = flights.join(ID, [7; 32]) else { panic!("it is running") };
        assert!(matches!(flights.join(ID, [8; 32]), FlightRole::KeyReused));
        assert!(flights.contains(&ID));
        lead.begin_work();
        lead.publish(Ok(Answer::no_content()));
        let seen = progress.wait_for(|progress| matches!(progress, Progress::Done(_))).await.expect("it has ended");
        assert!(matches!(&*seen, Progress::Done(Ok(answer)) if *answer == Answer::no_content()));
        assert!(!flights.contains(&ID));
        assert!(matches!(flights.join(ID, [8; 32]), FlightRole::Leader(..)), "the key is free");
    }

    #[tokio::test]
    async fn a_dropped_leader_frees_the_key_and_wakes_the_followers() {
        let flights = Flights::default();
        let FlightRole::Leader(lead, mut progress) = flights.join(ID, [7; 32]) else { panic!("it is the first") };
        drop(lead);
        assert!(progress.wait_for(|progress| matches!(progress, Progress::Done(_))).await.is_err());
        assert!(!flights.contains(&ID));
    }

    #[test]
    fn running_keys_are_limited() {
        let flights = Flights::default();
        let id = |number: usize| {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_be_bytes());
            id
        };
        let leads: Vec<FlightRole> = (0..MAX_FLIGHTS).map(|number| flights.join(id(number), [7; 32])).collect();
        assert!(leads.iter().all(|joined| matches!(joined, FlightRole::Leader(..))));
        assert!(matches!(flights.join(id(MAX_FLIGHTS), [7; 32]), FlightRole::Full));
        assert!(matches!(flights.join(id(0), [7; 32]), FlightRole::Follower(_)), "a follower takes no place");
    }
}
