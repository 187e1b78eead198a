//! The purchases of the crowd: each admitted person holds a block of seats, checks out and pays.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use uuid::Uuid;

use super::{Crowd, Person, SHORT_PAUSE, TIMEOUT, lock};
use crate::http::text_after;
use crate::on_sale::client::CrowdClient;
use crate::on_sale::requests::{describe, id_of, request};
use crate::random::Random;

/// One in this many people first tries seats that are already sold.
const TRIES_SOLD_SEATS_ONE_IN: u64 = 8;

impl Crowd<'_> {
    /// Admits people in turn and lets them buy, in parallel workers, until all is sold or the line is empty.
    pub fn buy(&self, people: &[Person], workers: usize) {
        std::thread::scope(|threads| {
            for worker in 0..workers {
                threads.spawn(move || {
                    let (mut client, mut random) = (CrowdClient::new(self.addresses, worker), Random::fresh());
                    while let Some(person) = people.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                        if !self.wait_for_turn(person) {
                            return;
                        }
                        if let Err(error) = self.buy_block(&mut client, person, &mut random) {
                            self.add_violation(|| format!("place {} could not buy: {error:#}", person.place));
                        }
                    }
                });
            }
        });
        self.end();
    }

    fn buy_block(&self, client: &mut CrowdClient<'_>, person: &Person, random: &mut Random) -> Result<()> {
        let Some(pass) = self.enter(client, person)? else { return Ok(()) };
        let mut tries = 0;
        let began = Instant::now();
        while !self.is_over() {
            if began.elapsed() > TIMEOUT {
                bail!("admitted, and neither seats nor the end of the sale within {} s", TIMEOUT.as_secs());
            }
            tries += 1;
            let tries_sold_seats = tries == 1 && random.below(TRIES_SOLD_SEATS_ONE_IN) == 0;
            let (block, was_free) = {
                let mut blocks = lock(&self.blocks);
                match tries_sold_seats.then(|| blocks.sold.len() as u64).filter(|sold| *sold > 0) {
                    Some(sold) => (blocks.sold[random.below(sold) as usize].0.clone(), false),
                    None => match blocks.free.pop() {
                        Some(block) => (block, true),
                        None => (Vec::new(), false),
                    },
                }
            };
            if block.is_empty() {
                // All blocks are in use; one may become free again.
                std::thread::sleep(SHORT_PAUSE);
                continue;
            }
            match self.try_purchase(client, person, &pass, &block, tries) {
                Ok(Some(booking)) => {
                    lock(&self.blocks).sold.push((block, booking));
                    self.sold.fetch_add(u32::from(was_free), Ordering::Relaxed);
                    return Ok(());
                }
                outcome => {
                    if was_free {
                        lock(&self.blocks).free.push(block);
                    }
                    outcome?;
                }
            }
        }
        Ok(())
    }

    /// Holds, checks out and pays. Returns `None` when the seats are not available.
    fn try_purchase(
        &self,
        client: &mut CrowdClient<'_>,
        person: &Person,
        pass: &str,
        seats: &[u32],
        tries: u32,
    ) -> Result<Option<Uuid>> {
        let visitor = &person.visitor;
        let seats = seats.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let pass = format!("Queue-Pass: {pass}\r\n");
        let body = format!(r#"{{"seats":[{seats}]}}"#);
        let response = self.send_until_answered(
            client,
            &self.request("POST", "/holds", &body, visitor, &format!("hold{tries}"), &pass),
        )?;
        if response.status != 201 {
            return Ok(None);
        }
        let hold = id_of(&response)?;
        let buyer = r#"{"name":"Ann Example","email":"ann@example.org"}"#;
        let body = format!(r#"{{"show":"{}","hold":"{hold}","buyer":{buyer}}}"#, self.show.id);
        let response = self.send_until_answered(
            client,
            &request("POST", "/api/v1/bookings", &body, visitor, &format!("book{tries}")),
        )?;
        if response.status != 201 {
            // Release the hold: it would block the next buyer.
            let path = format!("/holds/{hold}");
            self.send_until_answered(client, &self.request("DELETE", &path, "", visitor, &format!("drop{tries}"), ""))?;
            return Ok(None);
        }
        let booking = id_of(&response)?;
        let path = format!("/api/v1/bookings/{booking}");
        let pay = request(
            "POST",
            &format!("{path}/confirm"),
            r#"{"payment_token":"tok_paid"}"#,
            visitor,
            &format!("pay{tries}"),
        );
        let mut response = self.send_until_answered(client, &pay)?;
        let began = Instant::now();
        loop {
            match text_after(&response.body, "state") {
                Some("CONFIRMED") => return Ok(Some(booking)),
                Some("CANCELLED" | "EXPIRED") => return Ok(None),
                _ if began.elapsed() > TIMEOUT => bail!("booking {booking} is not settled: {}", describe(&response)),
                _ => std::thread::sleep(SHORT_PAUSE * 10),
            }
            response = self.send_until_answered(client, &request("GET", &path, "", visitor, "look"))?;
        }
    }
}
