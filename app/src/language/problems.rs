//! Problems of the API in the words of the page: programs go by their codes, and so do we.

use domain::api::ProblemView;
use domain::seats::MAX_SEATS_PER_HOLD;
use domain::till::UNDO_MS;
use domain::time::MINUTE_MS;

use super::{Arg, Language, current, try_in};

/// What happened and what to do. The API speaks English and knows more of the case than its code says,
/// so its own sentence is used where that is the language; elsewhere the message of the code.
#[must_use]
pub fn problem_in_words(problem: &ProblemView) -> String {
    let language = current();
    let own = || (!problem.detail.is_empty()).then(|| problem.detail.clone());
    let known = || try_in(language, &format!("problem.{}", problem.code), rule(&problem.code).as_slice());
    let said = if language == Language::English { own().or_else(known) } else { known() };
    said.unwrap_or_else(|| crate::say!("problem.other"))
}

/// The number in the rule that was broken, where the message of the code tells it.
fn rule(code: &str) -> Option<(&'static str, Arg<'static>)> {
    match code {
        "seat_count" => Some(("most", MAX_SEATS_PER_HOLD.into())),
        "undo_too_late" => Some(("minutes", (UNDO_MS / MINUTE_MS).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::speaking;
    use super::*;

    fn problem(code: &str, detail: &str) -> ProblemView {
        ProblemView {
            kind: String::new(),
            title: "The hold is over".to_owned(),
            status: 410,
            detail: detail.to_owned(),
            code: code.to_owned(),
            seats: Vec::new(),
            areas: Vec::new(),
            findings: Vec::new(),
            puzzle: None,
            hold: None,
            request_id: None,
        }
    }

    #[test]
    fn a_problem_is_told_in_the_language_of_the_page() {
        let over = problem("hold_expired", "Your hold of C7 is over.");
        assert_eq!(problem_in_words(&over), "Your hold of C7 is over.");
        let german = speaking(Language::German, || problem_in_words(&over));
        assert!(german.contains("Zeit") && !german.contains("hold"), "{german}");
    }

    #[test]
    fn the_message_of_a_rule_tells_its_number() {
        for code in ["seat_count", "undo_too_late"] {
            for language in Language::ALL {
                let number = match rule(code) {
                    Some((_, Arg::Number(number))) => super::super::number(number, language),
                    other => panic!("{code} has {other:?}"),
                };
                let said = speaking(language, || problem_in_words(&problem(code, "")));
                assert!(said.contains(&number) && !said.contains('{'), "{language:?} {said}");
            }
        }
    }

    #[test]
    fn a_code_nobody_knows_is_told_as_trouble_of_ours() {
        let words = speaking(Language::Spanish, || problem_in_words(&problem("brand_new", "Something in English.")));
        assert!(!words.is_empty() && !words.contains("English"), "{words}");
    }
}
