//! Values that live as long as the page, and lists that are drawn once.
//!
//! Leptos generates the code of a signal for every type it stores, which was a fifth of the code needed before a seat
//! could be taken, and looks each stored value up under its owner. A session ends with its page, so these values have no
//! owner and no disposal, and one notification serves all types. Created in the browser only: on a server they would leak
//! memory.

use std::sync::{PoisonError, RwLock};

use leptos::prelude::{ArcTrigger, IntoView, Notify, Track};
use leptos::tachys::view::iterators::StaticVec;

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

impl<T: Default> Default for PageSignal<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

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

/// Holds browser objects, which stay in the page's one thread.
pub use send_wrapper::SendWrapper;

/// A value without an owner. A handle: copy it.
pub struct PageCell<T: 'static>(&'static RwLock<T>);

impl<T> Clone for PageCell<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PageCell<T> {}

impl<T: Default> Default for PageCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> PageCell<T> {
    /// Stores a value until the page ends.
    pub fn new(value: T) -> Self {
        Self(Box::leak(Box::new(RwLock::new(value))))
    }

    pub fn with_value<U>(self, read: impl FnOnce(&T) -> U) -> U {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn update_value<U>(self, change: impl FnOnce(&mut T) -> U) -> U {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_value(self, value: T) {
        self.update_value(|stored| *stored = value);
    }

    pub fn get_value(self) -> T
    where
        T: Clone,
    {
        self.with_value(T::clone)
    }
}

/// Collects views into a list that is drawn once.
pub trait DrawnOnce: Iterator<Item: IntoView> + Sized {
    fn drawn_once(self) -> StaticVec<Self::Item> {
        self.collect::<Vec<_>>().into()
    }
}

impl<I: Iterator<Item: IntoView>> DrawnOnce for I {}

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

    #[test]
    fn copies_share_one_value() {
        let cell = PageCell::new(vec![1]);
        let other = cell;
        assert_eq!(
            other.update_value(|list| {
                list.push(2);
                list.len()
            }),
            2
        );
        assert_eq!((cell.get_value(), cell.with_value(Vec::len)), (vec![1, 2], 2));
        cell.set_value(Vec::new());
        assert!(other.get_value().is_empty());
    }
}
