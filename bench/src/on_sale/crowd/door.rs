//! At the door: they join, wait for their turn, and come in; some push.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Admission, Crowd, PATIENCE, Person, SHORT_PAUSE, lock};
use crate::http::{number_after, text_after};
use crate::on_sale::client::Client;
use crate::random::Random;

impl Crowd<'_> {
    /// So many people join, side by side.
    pub fn join(&self, people: usize, side_by_side: usize) -> Vec<Person> {
        let (left, joined) = (AtomicUsize::new(people), Mutex::new(Vec::with_capacity(people)));
        std::thread::scope(|threads| {
            for worker in 0..side_by_side {
                let (left, joined) = (&left, &joined);
                threads.spawn(move || {
                    let (mut client, mut random) = (Client::new(self.addresses, worker), Random::fresh());
                    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                        match self.one_joins(&mut client, random.hex()) {
                            Ok(person) => lock(joined).push(person),
                            Err(error) => self.complain(|| format!("somebody could not join: {error:#}")),
                        }
                    }
                });
            }
        });
        joined.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_joins(&self, client: &mut Client<'_>, visitor: String) -> Result<Person> {
        let told = self.until_told(client, &self.request("POST", "/queue", "", &visitor, "join", ""))?;
        let number = number_after(&told.body, "number").context("a ticket without a number")?;
        let ticket = text_after(&told.body, "ticket").context("no ticket")?.to_owned();
        Ok(Person { visitor, number, ticket, place: number })
    }

    /// Whether their turn came before all was sold.
    pub(super) fn waits_for_turn(&self, person: &Person) -> bool {
        while self.called.load(Ordering::Relaxed) <= person.place {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(SHORT_PAUSE);
        }
        true
    }

    /// Comes to the door until they are in: their pass; `None` when all is sold.
    pub(super) fn comes_in(&self, client: &mut Client<'_>, person: &Person) -> Result<Option<String>> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let request = self.request("POST", "/queue", "", &person.visitor, "come", &ticket);
        let (began, mut was_late) = (Instant::now(), false);
        while !self.is_over() {
            let told = self.until_told(client, &request)?;
            let state = text_after(&told.body, "state").unwrap_or("no state").to_owned();
            match state.as_str() {
                "INSIDE" => {
                    lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
                    self.late.fetch_add(u64::from(was_late), Ordering::Relaxed);
                    return Ok(Some(text_after(&told.body, "pass").context("inside without a pass")?.to_owned()));
                }
                "WAITING" | "CALLED" => {}
                "LATE" => was_late = true,
                other => bail!("at the door they are {other}"),
            }
            if began.elapsed() > PATIENCE {
                bail!("called and not let in within {} s: {state}", PATIENCE.as_secs());
            }
            std::thread::sleep(SHORT_PAUSE * 5);
        }
        Ok(None)
    }

    /// Somebody tries to come in before their turn, and to take seats without a pass.
    pub fn pushes(&self, client: &mut Client<'_>, person: &Person) -> Result<()> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let told = self.until_told(client, &self.request("POST", "/queue", "", &person.visitor, "push", &ticket))?;
        if text_after(&told.body, "state") == Some("INSIDE") {
            lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
            return Ok(());
        }
        let hold = self.request("POST", "/holds", r#"{"seats":[0]}"#, &person.visitor, "push", &ticket);
        match client.ask(&hold) {
            Ok(told) => {
                self.note(&told);
                if told.status < 400 {
                    self.complain(|| format!("place {} took a seat without a pass", person.place));
                }
                self.turned_away.fetch_add(1, Ordering::Relaxed);
            }
            Err(lost) => self.note_loss(lost),
        }
        Ok(())
    }
}
