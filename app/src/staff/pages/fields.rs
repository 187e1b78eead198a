//! Fields of staff forms. A field is read from its form and rendered by one description.

use domain::money::Currency;
use language::say;
use leptos::prelude::*;

use super::form::{Form, REASON};
use crate::markup::{IntoMarkup, Markup};

/// The description of a field. Its label is the key of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    name: &'static str,
    id: &'static str,
    label: &'static str,
    kind: Kind,
    is_required: bool,
    /// True if its error is shown below it.
    is_marked: bool,
    /// True if it has the width of two fields.
    is_long: bool,
    /// Most characters, or the limits of a number.
    limits: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Date,
    Time,
    Moment,
    Reason,
    Tick,
}

impl AsRef<str> for Field {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl Field {
    const fn new(name: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { name, id: name, label, kind, is_required: false, is_marked: false, is_long: false, limits: None }
    }

    /// A line of text.
    pub const fn text(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Text)
    }

    /// A whole number.
    pub const fn number(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Number)
    }

    /// A day.
    pub const fn date(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Date)
    }

    /// A time of day, in the theatre's time zone.
    pub const fn time(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Time)
    }

    /// A date and time, in the theatre's time zone.
    pub const fn moment(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Moment)
    }

    /// A checkbox.
    pub const fn tick(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Tick)
    }

    /// A required reason of one line. Pages have several, so each has its id.
    pub const fn reason(id: &'static str, label: &'static str) -> Self {
        Self { id, is_required: true, is_marked: true, ..Self::new(REASON, label, Kind::Reason) }
    }

    /// The field must be filled in.
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// The field may be empty.
    pub const fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }

    /// Its error is shown below it.
    pub const fn marked(self) -> Self {
        Self { is_marked: true, ..self }
    }

    /// The field has the width of two, where there is space.
    pub const fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// A text has at most so many characters.
    pub const fn at_most(self, characters: u32) -> Self {
        Self { limits: Some((0, characters)), ..self }
    }

    /// A number is from `least` to `most`.
    pub const fn between(self, least: u32, most: u32) -> Self {
        Self { limits: Some((least, most)), ..self }
    }

    /// The field with its value, and its error if it has one.
    pub fn view(self, form: &Form) -> Markup {
        self.labelled(say!(self.label), form)
    }

    /// The same for a label with values in it.
    pub fn labelled(self, label: String, form: &Form) -> Markup {
        self.render(self.id.to_owned(), label, form)
    }

    /// The same with its own id, for forms that are listed.
    pub fn with_id(self, id: String, form: &Form) -> Markup {
        self.render(id, say!(self.label), form)
    }

    fn render(self, id: String, label: String, form: &Form) -> Markup {
        let Self { name, kind, is_required: required, is_marked, is_long, limits, .. } = self;
        let value = form.text(name);
        if kind == Kind::Tick {
            let is_ticked = !value.is_empty();
            return view! {
                <label class="organiser-tick organiser-wide" for=id>
                    <input id=id.clone() name=name r#type="checkbox" value="true" checked=is_ticked />
                    <span>{label}</span>
                </label>
            }
            .into_markup();
        }
        let kind_name = match kind {
            Kind::Number => "number",
            Kind::Date => "date",
            Kind::Time => "time",
            Kind::Moment => "datetime-local",
            Kind::Text | Kind::Reason | Kind::Tick => "text",
        };
        let is_number = kind == Kind::Number;
        let max_chars = limits.filter(|_| !is_number).map(|(_, most)| most.to_string());
        let (min, max) = limits.filter(|_| is_number).unzip();
        let is_reason = kind == Kind::Reason;
        let class = match (is_reason, is_long) {
            (true, _) => "field organiser-reason",
            (false, true) => "field organiser-long",
            (false, false) => "field",
        };
        if !is_marked {
            return view! {
                <div class=class>
                    <label for=id.clone()>{label}</label>
                    <input id=id name=name r#type=kind_name maxlength=max_chars min=min max=max value=value required=required />
                </div>
            }
            .into_markup();
        }
        let autocomplete = is_reason.then_some("off");
        let max_chars = if is_reason { Some("300".to_owned()) } else { max_chars };
        let (invalid, described_by, below) = error_attributes(form, name, &id);
        view! {
            <div class=class>
                <label for=id.clone()>{label}</label>
                <div class="field-message">
                    <input id=id name=name r#type=kind_name autocomplete=autocomplete maxlength=max_chars min=min max=max
                        required=required value=value aria-invalid=invalid aria-describedby=described_by />
                    {below}
                </div>
            </div>
        }
        .into_markup()
    }
}

/// ARIA attributes for the input with this id (`aria-invalid`, `aria-describedby`), and the error below it.
pub(super) fn error_attributes(
    form: &Form,
    field: &str,
    id: &str,
) -> (Option<&'static str>, Option<String>, Option<Markup>) {
    let Some(refusal) = form.refusal(field) else { return (None, None, None) };
    let (error, words) = (format!("{id}-error"), refusal.words());
    let below = view! { <p class="field-error" id=error.clone() data-testid="field-error">{words}</p> };
    (Some("true"), Some(error), Some(below.into_markup()))
}

/// A field for an amount. The label shows the currency's code if given.
pub(super) fn amount_field(
    form: &Form,
    (id, name): (String, String),
    label: String,
    currency: Option<Currency>,
    required: bool,
) -> Markup {
    let (invalid, described_by, below) = error_attributes(form, &name, &id);
    let currency = currency.map(|currency| format!(" ({})", currency.code()));
    let value = form.text(&name);
    view! {
        <div class="field">
            <label for=id.clone()><bdi>{label}</bdi>{currency}</label>
            <div class="field-message">
                <input id=id name=name r#type="text" inputmode="decimal" autocomplete="off" maxlength="20" dir="ltr"
                    required=required value=value aria-invalid=invalid aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_markup()
}

/// A labelled select of values and their words. Without a chosen value the first is chosen.
pub(super) fn choice(form: &Form, name: &'static str, label: String, options: Vec<(String, String)>) -> Markup {
    let (invalid, described_by, below) = error_attributes(form, name, name);
    let chosen = form.get(name);
    let options = options.into_iter().map(|(value, words)| {
        let is_chosen = value == chosen;
        view! { <option value=value selected=is_chosen>{words}</option> }
    });
    let options = options.collect_view();
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <div class="field-message">
                <select id=name name=name aria-invalid=invalid aria-describedby=described_by>{options}</select>
                {below}
            </div>
        </div>
    }
    .into_markup()
}

/// A value that the form sends back unchanged.
pub(super) fn hidden(name: &'static str, value: impl Into<String>) -> Markup {
    let value: String = value.into();
    view! { <input r#type="hidden" name=name value=value /> }.into_markup()
}
