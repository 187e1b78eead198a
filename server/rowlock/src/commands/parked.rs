//! `rowlock parked`: effects and purges whose retries are exhausted and that wait for a person.

use catalogue::cdn;
use clap::Subcommand;
use platform::clock;
use selling::{bookings, outbox};

use super::{Database, in_words};

#[derive(Subcommand)]
pub enum ParkedCommand {
    /// Name them.
    List,
    /// Have one tried again.
    Retry {
        /// Its number in the list.
        id: i64,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
    /// Remove one from the list: it was done in another way.
    Settle {
        /// Its number in the list.
        id: i64,
        /// How, in one line.
        #[arg(long)]
        reason: String,
    },
    /// Retry all parked mails.
    RetryMails {
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
    /// Retry the purges that the CDN never confirmed.
    RetryPurges,
}

pub async fn run(what: ParkedCommand, database: &Database) -> anyhow::Result<()> {
    let pg = database.connect(1).await?;
    match what {
        ParkedCommand::List => {
            let list = outbox::parked(&pg, None).await?;
            for job in &list {
                let amount = job.amount.map(|amount| format!(" {amount}")).unwrap_or_default();
                let since = clock::rfc3339(job.since);
                println!(
                    "{}  {}  {}{amount}  since {since}, {} tries: {}",
                    job.id, job.reference, job.effect, job.attempts, job.why
                );
            }
            let differences = bookings::list_open_differences(&pg, None).await?;
            for found in &differences {
                let (since, booking) = (clock::rfc3339(found.since), found.booking.to_string());
                let reference = found.reference.as_deref().unwrap_or(&booking);
                println!("{}  {reference}  ledger {}  since {since}: {}", found.id, found.amount, found.why);
            }
            let purges = cdn::parked(&pg).await?;
            for purge in &purges {
                let since = clock::rfc3339(purge.since);
                println!("purge of {}  since {since}, {} tries: {}", purge.tag, purge.tries, purge.why);
            }
            let listed = list.len() + differences.len() + purges.len();
            let effects = outbox::count_parked(&pg).await?;
            let waiting = effects + bookings::count_open_differences(&pg).await? + cdn::count_parked(&pg).await?;
            eprintln!("{waiting} wait for a person; {listed} are listed, the oldest");
            Ok(())
        }
        ParkedCommand::Retry { id, reason } => {
            bookings::retry_parked(&pg, id, &reason, clock::now()).await.map_err(in_words)?;
            println!("{id} will be tried again");
            Ok(())
        }
        ParkedCommand::Settle { id, reason } => {
            bookings::settle_parked(&pg, id, &reason, clock::now()).await.map_err(in_words)?;
            println!("{id} is settled");
            Ok(())
        }
        ParkedCommand::RetryMails { reason } => {
            let retried = bookings::retry_parked_mails(&pg, &reason, clock::now()).await.map_err(in_words)?;
            println!("{retried} mails will be retried");
            Ok(())
        }
        ParkedCommand::RetryPurges => {
            println!("{} purges will be retried", cdn::retry_parked(&pg).await?);
            Ok(())
        }
    }
}
