//! The waiting room as the crowd uses it: people join, wait for their turn and enter; some try to jump the queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Admission, Crowd, Person, SHORT_PAUSE, TIMEOUT, lock};
use crate::http::{number_after, text_after};
use crate::on_sale::client::CrowdClient;
use crate::random::Random;

impl Crowd<'_> {
    /// Lets `people` persons join, in parallel workers.
    pub fn join(&self, people: usize, workers: usize) -> Vec<Person> {
        let (left, joined) = (AtomicUsize::new(people), Mutex::new(Vec::with_capacity(people)));
        std::thread::scope(|threads| {
            for worker in 0..workers {
                let (left, joined) = (&left, &joined);
                threads.spawn(move || {
                    let (mut client, mut random) = (CrowdClient::new(self.addresses, worker), Random::fresh());
                    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                        match self.join_queue(&mut client, random.hex()) {
                            Ok(person) => lock(joined).push(person),
                            Err(error) => self.add_violation(|| format!("a person could not join: {error:#}")),
                        }
                    }
                });
            }
        });
        joined.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn join_queue(&self, client: &mut CrowdClient<'_>, visitor: String) -> Result<Person> {
        let response = self.send_until_answered(client, &self.request("POST", "/queue", "", &visitor, "join", ""))?;
        let number = number_after(&response.body, "number").context("a ticket without a number")?;
        let ticket = text_after(&response.body, "ticket").context("no ticket")?.to_owned();
        Ok(Person { visitor, number, ticket, place: number })
    }

    /// Waits until a person's position is called. Returns `false` when the sale ended first.
    pub(super) fn wait_for_turn(&self, person: &Person) -> bool {
        while self.called.load(Ordering::Relaxed) <= person.place {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(SHORT_PAUSE);
        }
        true
    }

    /// Presents the ticket until the person is admitted. Returns the pass; `None` when the sale ended first.
    pub(super) fn enter(&self, client: &mut CrowdClient<'_>, person: &Person) -> Result<Option<String>> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let request = self.request("POST", "/queue", "", &person.visitor, "come", &ticket);
        let (began, mut was_late) = (Instant::now(), false);
        while !self.is_over() {
            let response = self.send_until_answered(client, &request)?;
            let state = text_after(&response.body, "state").unwrap_or("no state").to_owned();
            match state.as_str() {
                "INSIDE" => {
                    lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
                    self.late.fetch_add(u64::from(was_late), Ordering::Relaxed);
                    return Ok(Some(text_after(&response.body, "pass").context("admitted without a pass")?.to_owned()));
                }
                "WAITING" | "CALLED" => {}
                "LATE" => was_late = true,
                other => bail!("the waiting room answers {other}"),
            }
            if began.elapsed() > TIMEOUT {
                bail!("called and not admitted within {} s: {state}", TIMEOUT.as_secs());
            }
            std::thread::sleep(SHORT_PAUSE * 5);
        }
        Ok(None)
    }

    /// Tries to enter before the person's turn, and to hold a seat without a pass.
    pub fn jump_queue(&self, client: &mut CrowdClient<'_>, person: &Person) -> Result<()> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let response =
            self.send_until_answered(client, &self.request("POST", "/queue", "", &person.visitor, "push", &ticket))?;
        if text_after(&response.body, "state") == Some("INSIDE") {
            lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
            return Ok(());
        }
        let hold = self.request("POST", "/holds", r#"{"seats":[0]}"#, &person.visitor, "push", &ticket);
        match client.send(&hold) {
            Ok(response) => {
                self.check_refusal(&response);
                if response.status < 400 {
                    self.add_violation(|| format!("place {} took a seat without a pass", person.place));
                }
                self.turned_away.fetch_add(1, Ordering::Relaxed);
            }
            Err(lost) => self.count_lost(lost),
        }
        Ok(())
    }
}
