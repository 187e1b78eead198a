//! API problems in the language of the page, by their code.

use domain::api::ProblemView;
use domain::seats::MAX_SEATS_PER_HOLD;
use domain::till::UNDO_MS;
use domain::time::MINUTE_MS;

use super::{Arg, Language, current, try_in};

/// The problem in words: what happened and what to do. The API's own English sentence knows more of the case than the
/// code, so English pages use it; others use the message of the code.
pub fn problem_in_words(problem: &ProblemView) -> String {
    let language = current();
    let own = (language == Language::English && !problem.detail.is_empty()).then(|| problem.detail.clone());
    own.or_else(|| known(language, "problem", &problem.code)).unwrap_or_else(|| crate::say!("problem.other"))
}

fn known(language: Language, group: &str, code: &str) -> Option<String> {
    try_in(language, &format!("{group}.{code}"), rule(code).as_slice())
}

/// An error as staff see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaffError {
    /// In the language of the page.
    pub words: String,
    /// The API's English detail, where the words cannot say what to do.
    pub detail: Option<String>,
}

impl From<String> for StaffError {
    fn from(words: String) -> Self {
        Self { words, detail: None }
    }
}

impl StaffError {
    /// The same error in other words.
    pub fn with_words(self, words: String) -> Self {
        Self { words, ..self }
    }
}

/// The problem for staff, who act on shows, prices, tills and keys: buyer texts about bookings do not fit there. Many
/// things can be refused, so the words are general and the detail is shown beside them.
pub fn problem_for_staff(problem: &ProblemView) -> StaffError {
    let language = current();
    // The pages of buyers do not carry the problems of staff.
    let of_staff = || known(language, "staff_problem", &problem.code);
    if language == Language::English {
        let detail = (!problem.detail.is_empty()).then(|| problem.detail.clone());
        return detail.or_else(of_staff).unwrap_or_else(|| problem_in_words(problem)).into();
    }
    let of_code =
        (problem.code != "wrong_state").then(|| known(language, "problem", &problem.code).or_else(of_staff)).flatten();
    let is_refused = (400..500).contains(&problem.status);
    let is_general = is_refused && (of_code.is_none() || problem.code == "malformed");
    let general = || if is_refused { crate::say!("common.refused") } else { crate::say!("problem.other") };
    let detail = (is_general && !problem.detail.is_empty()).then(|| problem.detail.clone());
    StaffError { words: of_code.unwrap_or_else(general), detail }
}

/// The number in the violated rule, if the message of the code uses it.
fn rule(code: &str) -> Option<(&'static str, Arg<'static>)> {
    match code {
        "seat_count" => Some(("most", MAX_SEATS_PER_HOLD.into())),
        "undo_too_late" => Some(("minutes", (UNDO_MS / MINUTE_MS).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::with_language;
    use super::*;

    fn problem(code: &str, detail: &str) -> ProblemView {
        ProblemView {
            title: "The hold is over".to_owned(),
            status: 410,
            detail: detail.to_owned(),
            code: code.to_owned(),
            ..ProblemView::default()
        }
    }

    #[test]
    fn a_problem_is_in_the_language_of_the_page() {
        let over = problem("hold_expired", "Your hold of C7 is over.");
        assert_eq!(problem_in_words(&over), "Your hold of C7 is over.");
        let german = with_language(Language::German, || problem_in_words(&over));
        assert!(german.contains("Zeit") && !german.contains("hold"), "{german}");
    }

    #[test]
    fn the_message_of_a_rule_contains_its_number() {
        for code in ["seat_count", "undo_too_late"] {
            for language in Language::ALL {
                let number = match rule(code) {
                    Some((_, Arg::Number(number))) => super::super::number(number, language),
                    other => panic!("{code} has {other:?}"),
                };
                let said = with_language(language, || problem_for_staff(&problem(code, ""))).words;
                assert!(said.contains(&number) && !said.contains('{'), "{language:?} {said}");
            }
        }
    }

    #[test]
    fn staff_see_the_detail_where_the_message_is_general() {
        let outcome = |code: &str, status| {
            let problem = ProblemView { status, ..problem(code, "Open the till first.") };
            (problem_for_staff(&problem), with_language(Language::German, || problem_for_staff(&problem)))
        };
        let our_fault = with_language(Language::German, || crate::say!("problem.other"));
        for code in ["wrong_state", "malformed", "list_invalid", "not_allowed", "brand_new"] {
            let (english, german) = outcome(code, 409);
            assert_eq!(english, StaffError::from("Open the till first.".to_owned()));
            assert_eq!(german.detail.as_deref(), Some("Open the till first."), "{code}");
            assert!(!german.words.contains("Buchung") && german.words != our_fault, "{code}: {german:?}");
        }
        let (_, known) = outcome("till_closed", 409);
        assert!(known.words.contains("Kasse") && known.detail.is_none(), "{known:?}");
        let (_, ours) = outcome("internal", 500);
        assert_eq!(ours, StaffError::from(our_fault));
    }

    #[test]
    fn an_unknown_code_is_reported_as_an_internal_error() {
        let words =
            with_language(Language::Spanish, || problem_in_words(&problem("brand_new", "Something in English.")));
        assert!(!words.is_empty() && !words.contains("English"), "{words}");
    }
}
