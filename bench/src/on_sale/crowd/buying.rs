//! Inside: they hold a block of seats, check out and pay.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use uuid::Uuid;

use super::{Crowd, PATIENCE, Person, SHORT_PAUSE, lock};
use crate::http::text_after;
use crate::on_sale::client::Client;
use crate::on_sale::requests::{anywhere, id_of, words};
use crate::random::Random;

/// One in so many tries seats that are somebody's first.
const GREEDY: u64 = 8;

impl Crowd<'_> {
    /// Everybody whose turn it is comes in and buys, side by side, until all is sold or nobody is left.
    pub fn buy(&self, people: &[Person], side_by_side: usize) {
        std::thread::scope(|threads| {
            for worker in 0..side_by_side {
                threads.spawn(move || {
                    let (mut client, mut random) = (Client::new(self.addresses, worker), Random::fresh());
                    while let Some(person) = people.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                        if !self.waits_for_turn(person) {
                            return;
                        }
                        if let Err(error) = self.one_buys(&mut client, person, &mut random) {
                            self.complain(|| format!("place {} was left alone: {error:#}", person.place));
                        }
                    }
                });
            }
        });
        self.end();
    }

    fn one_buys(&self, client: &mut Client<'_>, person: &Person, random: &mut Random) -> Result<()> {
        let Some(pass) = self.comes_in(client, person)? else { return Ok(()) };
        let mut tries = 0;
        let began = Instant::now();
        while !self.is_over() {
            if began.elapsed() > PATIENCE {
                bail!("inside, and neither seats nor the end of the sale within {} s", PATIENCE.as_secs());
            }
            tries += 1;
            let greedy = tries == 1 && random.below(GREEDY) == 0;
            let (block, is_mine) = {
                let mut blocks = lock(&self.blocks);
                match greedy.then(|| blocks.sold.len() as u64).filter(|sold| *sold > 0) {
                    Some(sold) => (blocks.sold[random.below(sold) as usize].0.clone(), false),
                    None => match blocks.free.pop() {
                        Some(block) => (block, true),
                        None => (Vec::new(), false),
                    },
                }
            };
            if block.is_empty() {
                // All are in somebody's hands, and may come back.
                std::thread::sleep(SHORT_PAUSE);
                continue;
            }
            match self.sale(client, person, &pass, &block, tries) {
                Ok(Some(booking)) => {
                    lock(&self.blocks).sold.push((block, booking));
                    self.sold.fetch_add(u32::from(is_mine), Ordering::Relaxed);
                    return Ok(());
                }
                outcome => {
                    if is_mine {
                        lock(&self.blocks).free.push(block);
                    }
                    outcome?;
                }
            }
        }
        Ok(())
    }

    /// Holds, checks out and pays. `None`: the seats are not available.
    fn sale(
        &self,
        client: &mut Client<'_>,
        person: &Person,
        pass: &str,
        seats: &[u32],
        tries: u32,
    ) -> Result<Option<Uuid>> {
        let visitor = &person.visitor;
        let seats = seats.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let pass = format!("Queue-Pass: {pass}\r\n");
        let body = format!(r#"{{"seats":[{seats}]}}"#);
        let told =
            self.until_told(client, &self.request("POST", "/holds", &body, visitor, &format!("hold{tries}"), &pass))?;
        if told.status != 201 {
            return Ok(None);
        }
        let hold = id_of(&told)?;
        let buyer = r#"{"name":"Ann Example","email":"ann@example.org"}"#;
        let body = format!(r#"{{"show":"{}","hold":"{hold}","buyer":{buyer}}}"#, self.show.id);
        let told =
            self.until_told(client, &anywhere("POST", "/api/v1/bookings", &body, visitor, &format!("book{tries}")))?;
        if told.status != 201 {
            // What is left of the hold would be in the way of the next.
            let path = format!("/holds/{hold}");
            self.until_told(client, &self.request("DELETE", &path, "", visitor, &format!("drop{tries}"), ""))?;
            return Ok(None);
        }
        let booking = id_of(&told)?;
        let path = format!("/api/v1/bookings/{booking}");
        let pay = anywhere(
            "POST",
            &format!("{path}/confirm"),
            r#"{"payment_token":"tok_paid"}"#,
            visitor,
            &format!("pay{tries}"),
        );
        let mut told = self.until_told(client, &pay)?;
        let began = Instant::now();
        loop {
            match text_after(&told.body, "state") {
                Some("CONFIRMED") => return Ok(Some(booking)),
                Some("CANCELLED" | "EXPIRED") => return Ok(None),
                _ if began.elapsed() > PATIENCE => bail!("booking {booking} is not settled: {}", words(&told)),
                _ => std::thread::sleep(SHORT_PAUSE * 10),
            }
            told = self.until_told(client, &anywhere("GET", &path, "", visitor, "look"))?;
        }
    }
}
