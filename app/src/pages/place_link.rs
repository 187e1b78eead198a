//! The page of a link that moves a place in a waiting room to another device.

use language::say;
use leptos::prelude::*;

use super::ticket::ShowFacts;
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};

/// The page that asks the visitor before the place moves.
#[derive(Clone, Debug)]
pub struct PlaceLinkPage {
    /// The show of the waiting room.
    pub show: ShowFacts,
    /// Path of the show's page, where visitors join with a place of their own.
    pub show_path: String,
    /// Address of the form that moves the place.
    pub action: String,
}

impl Page for PlaceLinkPage {
    fn head(&self) -> Head {
        Head { title: say!("place_link.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        view! {
            <div class="booking">
                <section class="booking-status">
                    <h1>{say!("place_link.title")}</h1>
                    <p>{say!("place_link.lead")}</p>
                    <form action=self.action method="post">
                        <button class="button" r#type="submit" data-testid="continue-here">{say!("place_link.take")}</button>
                    </form>
                    <p><a class="button button-quiet" href=self.show_path data-testid="own-place">{say!("place_link.own")}</a></p>
                </section>
                <section class="booking-facts card" aria-label=say!("offer.facts")>{self.show.view()}</section>
            </div>
        }
        .into_markup()
    }
}
