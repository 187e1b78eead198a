//! The page of a show for those who are in front of it: the waiting room (the island).

use leptos::prelude::*;

use super::show::{Show, heading};
use crate::language::Arg;
use crate::say;
use crate::shell::{Head, Page};
use crate::waiting_room::{WORDS, WaitingRoom};

/// The page of a show that is entered through its waiting room.
#[derive(Clone, Debug)]
pub struct InFront {
    /// The show.
    pub show: Show,
    /// When the room opens, there: `Sat 21 Nov, 10:00`.
    pub opens: String,
}

impl Page for InFront {
    fn head(&self) -> Head {
        let Show { film, theatre, starts, city, .. } = &self.show;
        Head {
            title: format!("{}, {starts}", film.name),
            description: say!("show.description", film = &film.name, theatre = &theatre.name, time = Arg::Ours(starts)),
            live: true,
            words: WORDS,
            city: Some(city.clone()),
            private: true,
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
