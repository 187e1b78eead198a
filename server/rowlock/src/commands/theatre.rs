//! `rowlock theatre`: creates theatres, the first of which no manager can create because there is none yet.

use backoffice::organiser;
use clap::Subcommand;
use domain::api::theatres::{NewCity, TheatreRequest};
use platform::clock;

use super::{Database, in_words};

#[derive(Subcommand)]
pub enum TheatreCommand {
    /// Write one down, in a city that has one (`--city`) or in a new one (`--new-city`, `--country`, `--time-zone`).
    /// `rowlock admin create` makes a manager of it.
    Create {
        /// Its public name.
        #[arg(long)]
        name: String,
        /// Its street address.
        #[arg(long)]
        address: String,
        /// Its currency, for example `EUR`.
        #[arg(long)]
        currency: String,
        /// Slug of a city, for example `lisbon`.
        #[arg(long, required_unless_present = "new_city", conflicts_with = "new_city")]
        city: Option<String>,
        /// Name of a new city.
        #[arg(long, requires_all = ["country", "time_zone"])]
        new_city: Option<String>,
        /// The new city's country, for example `PT`.
        #[arg(long, requires = "new_city")]
        country: Option<String>,
        /// The clocks there, for example `Europe/Lisbon`.
        #[arg(long, requires = "new_city")]
        time_zone: Option<String>,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
}

pub async fn run(what: TheatreCommand, database: &Database) -> anyhow::Result<()> {
    let TheatreCommand::Create { name, address, currency, city, new_city, country, time_zone, reason } = what;
    let new_city = new_city.zip(country).zip(time_zone);
    let new_city = new_city.map(|((name, country), time_zone)| NewCity { name, country, time_zone });
    let request = TheatreRequest { name, address, city, new_city, currency, reason };
    let pg = database.connect(1).await?;
    let made = organiser::create_theatre_from_command_line(&pg, &request, clock::now()).await.map_err(in_words)?;
    println!("theatre {} is in {} ({})", made.id, made.city_name, made.city);
    Ok(())
}
