//! Moving a show to another screen: a preview of the effects, and the form.

use domain::api::moving::{MoveLine, MovePreview, MoveState, MoveView};
use domain::api::organiser::{OrganisedShow, ScreenView};
use leptos::prelude::*;

use super::fields::{Field, choice, hidden};
use super::{Desk, Form, Tab, head, page, when};
use crate::say;
use crate::shell::{Head, Page};

const WHY: Field = Field::reason("move-reason", "organiser.reason");

/// The preview page. Nothing has changed yet.
#[derive(Clone, Debug)]
pub struct MovePage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The show.
    pub show: OrganisedShow,
    /// The effects; `None` if the move is impossible.
    pub preview: Option<MovePreview>,
    /// The refused form, or an empty one.
    pub form: Form,
}

impl Page for MovePage {
    fn head(&self) -> Head {
        head(say!("organiser.move_title"))
    }

    fn view(self) -> AnyView {
        let Self { desk, show, preview, form } = self;
        let base = format!("/staff/{}/shows/{}", desk.theatre, show.id);
        let back = format!("{}, {}", show.title, when(&show.starts_local));
        let facts = format!("{} · {} · {}", show.screen_name, show.language, show.format);
        let preview_section = preview.map(|preview| preview_section(preview, &base, &form, &desk.key));
        let content = view! {
            <div class="organiser-facts">
                <p><a href=base.clone()><bdi>{back}</bdi></a>" · "<bdi>{facts}</bdi></p>
            </div>
            {preview_section}
        };
        page(&desk, Tab::Programme, say!("organiser.move_title"), content.into_any())
    }
}

fn preview_section(preview: MovePreview, base: &str, form: &Form, key: &str) -> impl IntoView + use<> {
    let MovePreview { same, offered, refunded, open, house_seats_lost, more, .. } = preview;
    let is_asked = offered.bookings > 0;
    let until = when(&preview.answer_until);
    let lines = (!preview.lines.is_empty()).then(|| affected_bookings(preview.lines, more));
    view! {
        <section class="card organiser-card" aria-labelledby="move" data-testid="move-preview">
            <h2 id="move">{say!("organiser.move_to", screen = &preview.screen_name)}" "{say!("organiser.seats", count = preview.seats)}</h2>
            <p class="quiet">{say!("organiser.move_nothing")}</p>
            <ul class="organiser-films">
                <li data-testid="move-same">{say!("organiser.move_same", bookings = same.bookings, seats = same.seats)}</li>
                <li data-testid="move-offered">{say!("organiser.move_offered", bookings = offered.bookings, seats = offered.seats)}</li>
                <li data-testid="move-refunded">{say!("organiser.move_refunded", bookings = refunded.bookings, seats = refunded.seats)}</li>
                {(open > 0).then(|| view! { <li>{say!("organiser.move_open", count = open)}</li> })}
                {(house_seats_lost > 0).then(|| view! { <li>{say!("organiser.move_house", count = house_seats_lost)}</li> })}
                {is_asked.then(|| view! { <li>{say!("organiser.move_answer", when = &until)}</li> })}
            </ul>
            {lines}
            <form class="organiser-form" action=format!("{base}/move") method="post">
                {hidden("key", key)}
                {hidden("screen", preview.screen)}
                {WHY.view(form)}
                <label class="organiser-tick organiser-wide" for="move-sure">
                    <input id="move-sure" name="sure" r#type="checkbox" value="true" required />
                    <span>{say!("organiser.move_sure", screen = &preview.screen_name)}</span>
                </label>
                <button class="button" r#type="submit" data-testid="move-show">{say!("organiser.move")}</button>
            </form>
        </section>
    }
}

/// The bookings that would not keep their seats.
fn affected_bookings(lines: Vec<MoveLine>, more: u32) -> impl IntoView {
    let rows = lines.into_iter().map(|line| {
        let then = if line.after.is_empty() { say!("organiser.move_money_back") } else { line.after.join(", ") };
        view! {
            <tr>
                <th scope="row">{line.reference}</th>
                <td class="reports-words"><bdi>{line.before.join(", ")}</bdi></td>
                <td class="reports-words"><bdi>{then}</bdi></td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <div class="reports-scroll" role="group" tabindex="0" aria-label=say!("organiser.move_who")>
            <table class="reports-table">
                <caption>{say!("organiser.move_who")}</caption>
                <thead>
                    <tr>
                        <th scope="col">{say!("organiser.move_booking")}</th>
                        <th scope="col" class="reports-words">{say!("organiser.move_now")}</th>
                        <th scope="col" class="reports-words">{say!("organiser.move_then")}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
            {(more > 0).then(|| view! { <p class="quiet small">{say!("organiser.move_more", count = more)}</p> })}
        </div>
    }
}

/// The progress of a show's last move.
pub(super) fn progress(moved: MoveView) -> impl IntoView {
    let MoveView { from, to, reason, state, same, offered, unanswered, refunded, answer_until } = moved;
    let words = match state {
        MoveState::Closing | MoveState::Carried => say!("organiser.moving", from = &from, to = &to),
        MoveState::Done => say!("organiser.moved", from = &from, to = &to),
        MoveState::Dropped => say!("organiser.move_dropped", to = &to),
    };
    let until = answer_until.filter(|_| unanswered > 0).map(|until| when(&until));
    let facts = matches!(state, MoveState::Carried | MoveState::Done).then(|| {
        view! {
            <ul class="organiser-films">
                <li>{say!("organiser.moved_same", count = same)}</li>
                <li data-testid="moved-offered">{say!("organiser.moved_offered", count = offered, unanswered = unanswered)}</li>
                <li>{say!("organiser.moved_refunded", count = refunded)}</li>
                {until.map(|until| view! { <li>{say!("organiser.move_answer", when = &until)}</li> })}
            </ul>
        }
    });
    let is_done = (state == MoveState::Done).then_some("true");
    view! {
        <section class="card organiser-card" role="status" data-testid="moved" data-finished=is_done>
            <h2>{words}</h2>
            <p class="quiet"><bdi>{reason}</bdi></p>
            {facts}
        </section>
    }
}

/// The form that chooses the other screen.
pub(super) fn move_form(base: &str, screens: &[ScreenView], current: &str) -> Option<impl IntoView + use<>> {
    let others = screens.iter().filter(|screen| screen.id != current);
    let others: Vec<(String, String)> = others.map(|screen| (screen.id.clone(), screen.name.clone())).collect();
    let first = Form::new([("screen", others.first()?.0.clone())]);
    Some(view! {
        <form class="organiser-form card organiser-card" action=format!("{base}/move") method="get" aria-labelledby="move">
            <h2 id="move" class="organiser-wide">{say!("organiser.move_title")}</h2>
            <p class="organiser-wide">{say!("organiser.move_lead")}</p>
            {choice(&first, "screen", say!("organiser.move_screen"), others)}
            <button class="button button-quiet" r#type="submit" data-testid="look-at-move">{say!("organiser.move_look")}</button>
        </form>
    })
}
