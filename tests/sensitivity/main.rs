//! What hangs on single numbers: every threshold and every bound of materiality is varied alone, a fifth up and a fifth down,
//! and the verdicts of the corpus that change are listed in `tests/expected/sensitivity.snap`. A number that is missing there
//! could be a fifth larger or smaller, and nobody would see.
//!
//! A recording is judged once for each number that was asked for: `cargo test --test sensitivity -- --ignored`, with
//! `INSTA_UPDATE=always` to write the list anew.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "the tests of single recordings need the labels and the truth")]
#[path = "../corpus/case.rs"]
mod case;
mod numbers;
#[path = "../shipped/mod.rs"]
mod shipped;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::thread;

use memlint::engine::{Input, Plan, examine};
use memlint::finding::Severity;
use memlint::{rules, threshold};

use crate::case::Case;
use crate::numbers::{Number, Varied, numbers};

/// A fifth up and a fifth down.
const FACTORS: [(f64, &str); 2] = [(1.2, "+20 %"), (0.8, "-20 %")];

/// One recording, understood, and what is said of it as things are.
struct Judged {
    case: &'static Case,
    input: Input,
    usual: BTreeSet<Said>,
    /// The thresholds that were asked for.
    asked: BTreeSet<&'static str>,
    /// The rules that say something of it where any bytes are enough.
    claiming: BTreeSet<String>,
}

impl Judged {
    fn of(case: &'static Case) -> Judged {
        let plan = Plan::of_rules(&rules::by_default());
        let ((input, usual), asked) = threshold::asked_by(|| {
            let input = understood(case);
            let usual = said(&input, &plan);
            (input, usual)
        });
        let findings = examine(&input, &plan.with_materiality(numbers::anything_counts())).findings;
        let claiming = findings.iter().map(|one| one.rule.to_string());
        let claiming = claiming.chain(usual.iter().map(|(rule, ..)| rule.clone())).collect();
        Judged { case, input, usual, asked, claiming }
    }

    /// Whether a number can change what is said: it was asked for.
    fn hangs_on(&self, number: &Number) -> bool {
        match number {
            Number::Threshold(name) => self.asked.contains(name.as_str()),
            Number::Bound(rule, ..) => self.claiming.contains(*rule),
        }
    }
}

/// A warning or an error: what can turn a gate red.
type Said = (String, Option<u32>, Severity);

fn understood(case: &Case) -> Input {
    Input::of(case.name.clone(), case.snapshot())
}

fn said(input: &Input, plan: &Plan) -> BTreeSet<Said> {
    let findings = examine(input, plan).findings.into_iter();
    findings
        .filter(|one| one.severity > Severity::Info)
        .map(|one| (one.rule.to_string(), one.location.as_ref().map(|place| place.line), one.severity))
        .collect()
}

/// Does something with all of these, on all processors, and keeps their order.
fn on_all<T: Send, U: Send>(all: impl IntoIterator<Item = T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let rest = Mutex::new(all.into_iter().enumerate().collect::<VecDeque<_>>());
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some((at, one)) = rest.lock().unwrap().pop_front() else { break };
                    let result = work(one);
                    done.lock().unwrap().insert(at, result);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

/// The differences that one number makes, a line each.
fn differences(corpus: &[Judged], number: &Number, factor: f64) -> Vec<String> {
    let varied = number.varied(factor);
    let plan = Plan::of_rules(&rules::by_default());
    let plan = match &varied {
        Varied::Bound(materiality) => plan.with_materiality(materiality.clone()),
        Varied::Threshold(_) => plan,
    };
    let of_one = |judged: &Judged| {
        let there = if number.decides_what_rules_ask() {
            said(&understood(judged.case), &plan)
        } else {
            said(&judged.input, &plan)
        };
        let lost = judged.usual.difference(&there).map(|said| ("no longer", said));
        let told = there.difference(&judged.usual).map(|said| ("now", said));
        lost.chain(told)
            .map(|(how, (rule, line, severity))| {
                let line = line.map_or_else(String::new, |line| format!(" at line {line}"));
                format!("{}: {how} {}: {rule}{line}", judged.case.name, severity.name())
            })
            .collect::<Vec<_>>()
    };
    on_all(corpus.iter().filter(|judged| judged.hangs_on(number)), of_one).into_iter().flatten().collect()
}

#[test]
#[ignore = "takes a minute: judges each recording for each number that is asked; CI runs it"]
fn every_number_alone_a_fifth_up_and_down() {
    // One after the other: what is asked for is written down for the whole process.
    let corpus: Vec<Judged> = case::all().iter().map(Judged::of).collect();
    let numbers = numbers();
    let (mut list, mut touched) = (String::new(), 0);
    for number in &numbers {
        let mut any = false;
        for (factor, name) in FACTORS {
            for line in differences(&corpus, number, factor) {
                let _ = writeln!(list, "{number} {name}: {line}");
                any = true;
            }
        }
        touched += usize::from(any);
    }
    let _ = writeln!(
        list,
        "{touched} of {} numbers change a verdict of {} recordings",
        numbers.len(),
        corpus.len()
    );
    insta::with_settings!({ snapshot_path => "../expected", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("sensitivity", list);
    });
}
