//! A signal that lives as long as the page.
//!
//! Has the methods of Leptos' `RwSignal` and notifies the same effects. Leptos generates the code of a signal for every
//! type it stores, which was a fifth of the code needed before a seat could be taken. Here one notification serves all
//! types, and a type adds only its accessors.

use std::sync::{PoisonError, RwLock};

use leptos::prelude::{ArcTrigger, Notify, Track};

/// A reactive value without an owner. A handle: copy it.
pub struct PageSignal<T: 'static>(&'static SignalState<T>);

struct SignalState<T> {
    value: RwLock<T>,
    changed: ArcTrigger,
}

impl<T> Clone for PageSignal<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PageSignal<T> {}

impl<T> PageSignal<T> {
    /// Stores a value until the page ends.
    pub fn new(value: T) -> Self {
        Self(Box::leak(Box::new(SignalState { value: RwLock::new(value), changed: ArcTrigger::new() })))
    }

    /// Subscribes the running effect.
    pub fn track(self) {
        self.0.changed.track();
    }

    /// Reads the value and subscribes.
    pub fn with<U>(self, read: impl FnOnce(&T) -> U) -> U {
        self.track();
        self.with_untracked(read)
    }

    /// Reads the value without subscribing.
    pub fn with_untracked<U>(self, read: impl FnOnce(&T) -> U) -> U {
        read(&self.0.value.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Clones the value and subscribes.
    pub fn get(self) -> T
    where
        T: Clone,
    {
        self.track();
        self.get_untracked()
    }

    /// Clones the value without subscribing.
    pub fn get_untracked(self) -> T
    where
        T: Clone,
    {
        self.with_untracked(T::clone)
    }

    /// Changes the value, then notifies.
    pub fn update<U>(self, change: impl FnOnce(&mut T) -> U) -> U {
        let outcome = change(&mut self.0.value.write().unwrap_or_else(PoisonError::into_inner));
        // After the lock is released: effects read the value at once.
        self.0.changed.notify();
        outcome
    }

    /// Replaces the value, then notifies.
    pub fn set(self, value: T) {
        self.update(|signal| *signal = value);
    }
}

#[cfg(test)]
mod tests {
    use leptos::prelude::{Get, GetUntracked, Memo, Owner};

    use super::*;

    #[test]
    fn copies_share_one_value_and_update_returns_the_outcome() {
        let signal = PageSignal::new(vec![1]);
        let other = signal;
        assert_eq!(
            other.update(|list| {
                list.push(2);
                list.len()
            }),
            2
        );
        assert_eq!((signal.get_untracked(), signal.with_untracked(Vec::len)), (vec![1, 2], 2));
        signal.set(Vec::new());
        assert!(other.with_untracked(Vec::is_empty));
    }

    #[test]
    fn tracked_reads_are_notified_and_untracked_reads_are_not() {
        let owner = Owner::new();
        owner.set();
        let (tracked, untracked) = (PageSignal::new(1), PageSignal::new(1));
        let sum = Memo::new(move |_| tracked.get() + tracked.with(|value| *value) + untracked.get_untracked());
        assert_eq!(sum.get_untracked(), 3);
        untracked.set(10);
        assert_eq!(sum.get_untracked(), 3, "not notified");
        tracked.set(2);
        assert_eq!(sum.get(), 14);
    }
}
