//! What the person has chosen on a question card so far, and the answer it makes. Values only.

use super::read::Question;
use std::collections::{BTreeMap, BTreeSet};

/// The choices, question by question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The question that is shown, from 0.
    pub at: usize,
    picked: BTreeMap<usize, BTreeSet<usize>>,
    own: BTreeMap<usize, String>,
}

impl Chosen {
    /// Whether this option of the shown question is chosen.
    pub(crate) fn has(&self, option: usize) -> bool {
        self.picked.get(&self.at).is_some_and(|picked| picked.contains(&option))
    }

    /// Chooses an option of the shown question: alone, or beside others when several are allowed.
    pub(crate) fn pick(&mut self, question: &Question, option: usize) {
        if option >= question.options.len() {
            return;
        }
        let picked = self.picked.entry(self.at).or_default();
        if question.several {
            if !picked.remove(&option) {
                picked.insert(option);
            }
        } else {
            *picked = BTreeSet::from([option]);
            self.own.remove(&self.at);
        }
    }

    /// The person's own words for the shown question. They take the place of a single choice.
    pub(crate) fn say(&mut self, question: &Question, words: &str) {
        if !question.several && !words.trim().is_empty() {
            self.picked.remove(&self.at);
        }
        self.own.insert(self.at, words.to_owned());
    }

    /// The person's own words for the shown question so far.
    pub(crate) fn own_words(&self) -> String {
        self.own.get(&self.at).cloned().unwrap_or_default()
    }

    /// The answer to one question, if there is one.
    fn answer(&self, at: usize, question: &Question) -> Option<String> {
        let picked = self.picked.get(&at).into_iter().flatten();
        let labels = picked.filter_map(|option| question.options.get(*option));
        let own = self.own.get(&at).map(|own| own.trim()).filter(|own| !own.is_empty());
        let all: Vec<&str> = labels.map(|choice| choice.label.as_str()).chain(own).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Whether the shown question is answered.
    pub(crate) fn is_answered(&self, questions: &[Question]) -> bool {
        questions.get(self.at).is_some_and(|question| self.answer(self.at, question).is_some())
    }

    /// The next question, if there is one. Returns whether there was.
    pub(crate) fn next(&mut self, questions: &[Question]) -> bool {
        let more = self.at + 1 < questions.len();
        self.at += usize::from(more);
        more
    }

    /// All answers by question, once every question has one.
    pub(crate) fn answers(&self, questions: &[Question]) -> Option<BTreeMap<String, String>> {
        let answered = questions
            .iter()
            .enumerate()
            .map(|(at, question)| Some((question.text.clone(), self.answer(at, question)?)));
        answered.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::read::Choice;

    fn question(text: &str, several: bool) -> Question {
        let option = |label: &str| Choice { label: label.into(), description: String::new() };
        Question { text: text.into(), options: vec![option("Red"), option("Blue")], several }
    }

    #[test]
    fn one_choice_replaces_another_and_own_words_replace_both() {
        let all = [question("q", false)];
        let mut chosen = Chosen::default();
        assert!(!chosen.is_answered(&all) && chosen.answers(&all).is_none());
        chosen.pick(&all[0], 0);
        chosen.pick(&all[0], 1);
        chosen.pick(&all[0], 7);
        assert_eq!(chosen.answers(&all).unwrap()["q"], "Blue");
        chosen.say(&all[0], " green ");
        assert_eq!(chosen.answers(&all).unwrap()["q"], "green");
        chosen.pick(&all[0], 0);
        assert_eq!(chosen.answers(&all).unwrap()["q"], "Red");
        chosen.say(&all[0], "  ");
        assert_eq!(chosen.answers(&all).unwrap()["q"], "Red", "no words are no answer");
    }

    #[test]
    fn several_are_joined_and_toggled() {
        let all = [question("q", true)];
        let mut chosen = Chosen::default();
        chosen.pick(&all[0], 1);
        chosen.pick(&all[0], 0);
        chosen.say(&all[0], "and green");
        assert_eq!(chosen.answers(&all).unwrap()["q"], "Red, Blue, and green");
        chosen.pick(&all[0], 0);
        assert_eq!(chosen.answers(&all).unwrap()["q"], "Blue, and green");
    }

    #[test]
    fn every_question_needs_an_answer() {
        let all = [question("one", false), question("two", false)];
        let mut chosen = Chosen::default();
        chosen.pick(&all[0], 0);
        assert!(chosen.next(&all) && !chosen.is_answered(&all));
        assert_eq!(chosen.answers(&all), None);
        chosen.pick(&all[1], 1);
        assert!(!chosen.next(&all), "the last one");
        let answers = chosen.answers(&all).unwrap();
        assert_eq!((answers["one"].as_str(), answers["two"].as_str()), ("Red", "Blue"));
    }
}
