//! What is asked of a simulated run, and how often the answer was yes.

use indexmap::IndexMap;

/// Something that a run answers with yes or no, or with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// Whether `p here` is at most 0.05.
    Here,
    /// Whether it is at most 0.2.
    HereFifth,
    /// Whether it is at most 0.5.
    HereHalf,
    /// Whether `p new` is at most 0.05.
    New,
    /// The same, with a mean above zero.
    NewHarm,
    /// The same, with a mean below zero.
    NewGain,
    /// Whether the lower end of the interval lies above the true mean.
    LowAbove,
    /// Whether the upper end lies below it.
    HighBelow,
    /// Whether the interval of both ends misses it.
    PairMisses,
    /// Whether the t interval of recordings misses it.
    TMisses,
    /// Whether the t interval of these boundaries misses their own true mean.
    HereMisses,
    /// Whether the upper end lies below 1: "within 1 of 5".
    WithinOne,
    /// How wide the interval is, in actions.
    Width,
    /// The detectable effect, in actions.
    Detectable,
    /// Whether `p here` of any strategy that does nothing is at most 0.05, by Holm.
    FamilyHere,
    /// Whether `p new` of any strategy that does nothing is at most 0.05, by flipping all together.
    FamilyNew,
    /// The same, by Holm, to compare.
    FamilyNewHolm,
    /// The same, without any adjustment.
    FamilyNewUnadjusted,
    /// Whether the harm of a strategy that acts is found by flipping all together.
    FamilyFound,
    /// The same, by Holm.
    FamilyFoundHolm,
    /// Whether the control's own p says that the harness differs from itself.
    Gate,
    /// Whether a run that is looked at after every recording was ever stopped for harm.
    EverStopped,
    /// Whether it ever would have been, by a `p new` of at most 0.05 and a mean above zero.
    EverNewHarm,
    /// After how many recordings it was stopped, or all of them.
    StoppedAfter,
    /// Whether any strategy is called WORSE.
    Worse,
    /// Whether any is called WORSE HERE.
    WorseHere,
    /// Whether any is called WITHIN MARGIN.
    WithinMargin,
    /// Whether the verdict is INVALID.
    Invalid,
}

impl Question {
    /// In the words of a table, and the greatest share of wrong answers that is meant.
    pub fn words(self) -> (&'static str, Option<f64>) {
        match self {
            Self::Here => ("`p here` ≤ 0.05", Some(0.05)),
            Self::HereFifth => ("`p here` ≤ 0.2", Some(0.2)),
            Self::HereHalf => ("`p here` ≤ 0.5", Some(0.5)),
            Self::New => ("`p new` ≤ 0.05", Some(0.05)),
            Self::NewHarm => ("`p new` ≤ 0.05, says harm", Some(0.025)),
            Self::NewGain => ("`p new` ≤ 0.05, says gain", Some(0.025)),
            Self::LowAbove => ("`low` above the truth", Some(0.025)),
            Self::HighBelow => ("`high` below the truth", Some(0.025)),
            Self::PairMisses => ("`[low, high]` misses the truth", Some(0.05)),
            Self::TMisses => ("`cluster_t` misses the truth", Some(0.05)),
            Self::HereMisses => ("`here_interval` misses the truth of these boundaries", Some(0.05)),
            Self::WithinOne => ("`high` < 1", None),
            Self::Width => ("width of `[low, high]`, in actions", None),
            Self::Detectable => ("`detectable`, in actions", None),
            Self::FamilyHere => ("any `p here` ≤ 0.05, by `holm`", Some(0.05)),
            Self::FamilyNew => ("any `p new` ≤ 0.05, by `max_t`", Some(0.05)),
            Self::FamilyNewHolm => ("any `p new` ≤ 0.05, by `holm`", Some(0.05)),
            Self::FamilyNewUnadjusted => ("any `p new` ≤ 0.05, not adjusted", Some(0.05)),
            Self::FamilyFound => ("`p new` ≤ 0.05, by `max_t`", None),
            Self::FamilyFoundHolm => ("`p new` ≤ 0.05, by `holm`", None),
            Self::Gate => ("`control_gate` fires", Some(0.01)),
            Self::EverStopped => ("`EProcess` ever reaches 40", Some(0.025)),
            Self::EverNewHarm => ("`p new` ≤ 0.05 ever says harm", Some(0.025)),
            Self::StoppedAfter => ("recordings until `EProcess` reaches 40", None),
            Self::Worse => ("any verdict WORSE", Some(0.05)),
            Self::WorseHere => ("any verdict WORSE HERE", Some(0.05)),
            Self::WithinMargin => ("any verdict WITHIN MARGIN", Some(0.025)),
            Self::Invalid => ("verdict INVALID", Some(0.01)),
        }
    }

    /// Whether the answer is a number and no yes or no.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Width | Self::Detectable | Self::StoppedAfter)
    }
}

/// What a yes means in a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An error that is promised to be no more common than nominal.
    Promised,
    /// An error for which nothing is promised, such as one of a procedure outside of its assumptions.
    Shown,
    /// No error: what is found or earned.
    Found,
}

/// The answers of one run.
#[derive(Debug, Default)]
pub struct Answers(Vec<(Question, f64)>);

impl Answers {
    /// Answers with yes or no.
    pub fn says(&mut self, question: Question, yes: bool) {
        self.0.push((question, f64::from(u8::from(yes))));
    }

    /// Answers with a number.
    pub fn measures(&mut self, question: Question, number: f64) {
        self.0.push((question, number));
    }
}

/// Many answers to one question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How many runs answered.
    pub runs: u64,
    sum: f64,
    squares: f64,
}

impl Tally {
    /// A tally of so many runs, of which so many said yes.
    pub fn of(yes: u64, runs: u64) -> Self {
        Self { runs, sum: yes as f64, squares: yes as f64 }
    }

    fn add(&mut self, answer: f64) {
        self.merge(&Self { runs: 1, sum: answer, squares: answer * answer });
    }

    /// Puts another one into this.
    pub fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// How many said yes.
    pub fn yes(&self) -> u64 {
        self.sum.round() as u64
    }

    /// The mean answer: of yes and no, the share of yes. Zero where nobody answered.
    pub fn mean(&self) -> f64 {
        self.sum / self.runs.max(1) as f64
    }

    /// The Monte Carlo standard error of the mean, √(variance / runs).
    pub fn error(&self) -> f64 {
        let runs = self.runs.max(1) as f64;
        ((self.squares / runs - self.mean().powi(2)).max(0.0) / runs).sqrt()
    }

    /// The probability that as many or more say yes, where each does with this probability: the upper tail of a binomial.
    pub fn surprise(&self, nominal: f64) -> f64 {
        let n = self.runs;
        let odds = (nominal / (1.0 - nominal)).ln();
        // Logarithms, since the probability of no yes at all may be too small for a double.
        let step = |yes: u64| ((n - yes) as f64 / (yes + 1) as f64).ln() + odds;
        let mut log = n as f64 * (-nominal).ln_1p();
        (0..self.yes()).for_each(|yes| log += step(yes));
        let mut tail = 0.0;
        for yes in self.yes()..=n {
            let term = log.exp();
            tail += term;
            // Beyond the mean the terms fall ever faster.
            if yes as f64 > n as f64 * nominal && term < tail * 1e-17 {
                break;
            }
            if yes < n {
                log += step(yes);
            }
        }
        tail.min(1.0)
    }
}

/// Many answers to several questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tallies(IndexMap<Question, Tally>);

impl Tallies {
    /// Adds the answers of a run.
    pub fn add(&mut self, answers: &Answers) {
        for &(question, answer) in &answers.0 {
            self.0.entry(question).or_default().add(answer);
        }
    }

    /// Puts others into these.
    pub fn merge(&mut self, others: &Self) {
        for (question, tally) in &others.0 {
            self.0.entry(*question).or_default().merge(tally);
        }
    }

    /// The answers to a question; none where no run answered it.
    pub fn of(&self, question: Question) -> Tally {
        self.0.get(&question).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_with_its_error() {
        let mut tallies = Tallies::default();
        for run in 0..100 {
            let mut answers = Answers::default();
            answers.says(Question::New, run % 10 == 0);
            answers.measures(Question::Width, if run % 2 == 0 { 1.0 } else { 3.0 });
            tallies.add(&answers);
        }
        let new = tallies.of(Question::New);
        assert_eq!((new.yes(), new.runs, new.mean()), (10, 100, 0.1));
        assert!((new.error() - 0.03).abs() < 1e-12);
        let width = tallies.of(Question::Width);
        assert!((width.mean() - 2.0).abs() < 1e-12 && (width.error() - 0.1).abs() < 1e-12);
        assert_eq!(tallies.of(Question::Here), Tally::default());
    }

    #[test]
    fn a_surprise_is_the_tail_of_a_binomial() {
        // Of 4 with probability 1/4: 1 - 81/256 at least one, 67/256 at least two, 1/256 all.
        for (yes, tail) in [(0, 256.0), (1, 175.0), (2, 67.0), (3, 13.0), (4, 1.0)] {
            assert!((Tally::of(yes, 4).surprise(0.25) - tail / 256.0).abs() < 1e-14, "{yes}");
        }
        // Where the probability of none is below the least double: the median of 40,000 at 5 % is 2,000.
        let [above, below] = [2_000, 2_001].map(|yes| Tally::of(yes, 40_000).surprise(0.05));
        assert!(above > 0.5 && below < 0.5 && above - below < 0.02, "{above} {below}");
        assert!(Tally::of(2_300, 40_000).surprise(0.05) < 1e-10);
    }
}
