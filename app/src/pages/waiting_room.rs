//! The page of a show with a waiting room in front of it (an island).

use leptos::prelude::*;

use super::show::{SeatMapPage, heading};
use crate::language::Arg;
use crate::say;
use crate::shell::{Head, Page};
use crate::waiting_room::{WORDS, WaitingRoom};

/// The page of a show behind a waiting room.
#[derive(Clone, Debug)]
pub struct QueuePage {
    /// The show.
    pub show: SeatMapPage,
    /// Opening time of the waiting room, local: `Sat 21 Nov, 10:00`.
    pub opens: String,
}

impl Page for QueuePage {
    fn head(&self) -> Head {
        let SeatMapPage { film, theatre, starts, city, .. } = &self.show;
        Head {
            title: format!("{}, {starts}", film.name),
            description: say!("show.description", film = &film.name, theatre = &theatre.name, time = Arg::Ours(starts)),
            has_island: true,
            words: WORDS,
            city: Some(city.clone()),
            is_private: true,
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        view! {
            {heading(&self.show)}
            <WaitingRoom show=self.show.id opens=self.opens />
            <noscript>
                <p class="no-script">{say!("queue.no_script")}</p>
            </noscript>
        }
        .into_any()
    }
}
