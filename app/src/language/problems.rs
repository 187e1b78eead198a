//! Problems of the API in the words of the page: programs go by their codes, and so do we.

use domain::api::ProblemView;

use super::{Language, current, try_in};

/// What happened and what to do. The API speaks English and knows more of the case than its code says,
/// so its own sentence is used where that is the language; elsewhere the message of the code.
#[must_use]
pub fn problem_in_words(problem: &ProblemView) -> String {
    let language = current();
    let own = || (!problem.detail.is_empty()).then(|| problem.detail.clone());
    let known = || try_in(language, &format!("problem.{}", problem.code), &[]);
    let said = if language == Language::English { own().or_else(known) } else { known() };
    said.unwrap_or_else(|| crate::say!("problem.other"))
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
    fn a_code_nobody_knows_is_told_as_trouble_of_ours() {
        let words = speaking(Language::Spanish, || problem_in_words(&problem("brand_new", "Something in English.")));
        assert!(!words.is_empty() && !words.contains("English"), "{words}");
    }
}
