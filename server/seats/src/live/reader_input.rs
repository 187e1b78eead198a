//! Throttles the input of one reader: it changes sections once per pause, to the last sections asked for in it.
//!
//! A reader that sends more is not read until the pause is over. Its messages wait in its own connection and cost other
//! readers nothing.

use std::pin::Pin;
use std::time::Duration;

use domain::wire::ClientMessage;
use tokio::time::{Sleep, sleep};
use tungstenite::protocol::frame::coding::CloseCode;

use super::reader::{MapSubscriber, NoSuchSection};
use super::socket::End;

/// Minimum time between two changes of sections: the shortest tick.
const PAUSE: Duration = Duration::from_millis(50);
/// Messages of a reader that are read per pause; a page sends one or two.
const MAX_PER_PAUSE: u8 = 32;

/// Messages of a reader since the last pause. Usually there are none, and then there is no timer.
#[derive(Default)]
pub(super) struct ReaderInput {
    messages: u8,
    /// Sections asked for last and not followed yet.
    wanted: Option<Vec<u16>>,
    /// The timer of the current pause, started by its first message.
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReaderInput {
    /// True if no more messages are read in this pause.
    pub(super) fn is_full(&self) -> bool {
        self.messages >= MAX_PER_PAUSE
    }

    /// Counts a message, and starts a pause if none is running.
    pub(super) fn count(&mut self) {
        self.messages = self.messages.saturating_add(1);
        self.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
    }

    /// Reads a message. Its sections are followed at once, or at the end of the running pause.
    pub(super) fn take(&mut self, reader: &mut MapSubscriber, bytes: &[u8]) -> Result<(), End> {
        let Ok(ClientMessage::Subscribe { sections }) = ClientMessage::decode(bytes) else {
            return Err(End::Close(CloseCode::Unsupported, "nothing we understand; see docs/api.md"));
        };
        let is_first = self.pause.is_none();
        self.count();
        if is_first {
            return follow(reader, &sections);
        }
        self.wanted = Some(sections);
        Ok(())
    }

    /// True while a pause is running.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Waits until the pause is over; returns at once without one.
    pub(super) async fn pause_is_over(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.as_mut().await;
        }
    }

    /// Ends the pause. If sections were asked for, they are followed and start the next pause.
    pub(super) fn end_pause(&mut self, reader: &mut MapSubscriber) -> Result<(), End> {
        let wanted = std::mem::take(self).wanted;
        let Some(sections) = wanted else { return Ok(()) };
        self.pause = Some(Box::pin(sleep(PAUSE)));
        follow(reader, &sections)
    }
}

fn follow(reader: &mut MapSubscriber, sections: &[u16]) -> Result<(), End> {
    let no_such_section = |NoSuchSection(_)| End::Close(CloseCode::Policy, "the room has no such section");
    reader.follow(sections).map_err(no_such_section)
}
