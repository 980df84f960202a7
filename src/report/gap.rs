//! What a snapshot lacks, in words.

use super::look::Detail;
use crate::engine::Recording;
use crate::snapshot::{Gap, Modelled};
use crate::timeline::Agreement;
use crate::unit::{count, shown_name};

/// What a file lacks: kinds and words. Of a slice first that it is one.
pub(super) fn all(recording: &Recording, detail: Detail) -> Vec<(&'static str, String)> {
    let excerpt = recording.excerpt.iter().map(|part| {
        let short = if part.iterations() < TREND { "; too short to show what grows or lives on" } else { "" };
        ("slice", format!("what came before and after: this is a slice, {part}{short}"))
    });
    let modelled = recording
        .modelled
        .iter()
        .map(|model| ("modelled", format!("a GPU's own: this is {}", model_words(model, detail))));
    let gaps = recording.gaps.iter().map(|gap| (kind(gap), describe(gap, detail)));
    excerpt.chain(modelled).chain(gaps).collect()
}

/// What is not known of a GPU that was not there.
fn model_words(model: &Modelled, detail: Detail) -> String {
    let sizes = match &*model.sizes_not_known {
        [] => String::new(),
        names => format!("; what these need is left out: {}", names.join(", ")),
    };
    let places: Vec<String> =
        model.branches.iter().map(|one| shown_name(&format!("{}:{}", one.file, one.line))).collect();
    let branches = match &*places {
        [] => String::new(),
        places => format!(", and the program decided by some of them at {}", some(places, detail)),
    };
    let steps = if model.hides_steps() { ", and took no step of its optimizer" } else { "" };
    let eager =
        if model.runs_eagerly { "; what it compiles (torch.compile) ran operator by operator" } else { "" };
    format!("{model}, values that large kernels compute are not known{branches}{steps}{sizes}{eager}")
}

/// So many iterations are needed to tell what happens in each of them from what happened once.
const TREND: usize = 3;

/// The names that are listed where not all are asked for.
const MOST_NAMES: usize = 5;

/// What a gap means for a reader of the report.
fn describe(gap: &Gap, detail: Detail) -> String {
    match gap {
        Gap::NoTraces => "no history: the file holds the allocator's segments only".to_owned(),
        Gap::NoStacks => "no stacks: recorded with `context=None`, so no line can be named".to_owned(),
        Gap::NoTimes => "no times: events carry none in this version of PyTorch".to_owned(),
        Gap::TimesOutOfOrder(by) => format!("times run backwards, by {by} microseconds at most"),
        Gap::UnknownKeys(keys) => format!("keys that memlint does not know: {}", listed(keys, detail)),
        Gap::UnknownActions(actions) => {
            format!("actions that memlint does not know: {}", listed(actions, detail))
        }
        Gap::UnknownStates(states) => {
            format!("whether blocks are in use whose state memlint does not know: {}", listed(states, detail))
        }
        Gap::InconsistentSegments(segments) => {
            format!("{} whose blocks overlap or do not fill them", count(*segments, "segment"))
        }
        Gap::HostMemory { blocks, bytes, used, events } => format!(
            "pinned host memory is not judged (at the end {bytes} in {}, {used} of them in use; {})",
            count(*blocks, "block"),
            count(*events, "event")
        ),
        Gap::FromProfiler => {
            "made from a profile: tensors instead of the allocator's blocks, no segments as the driver \
                              gave them, and the memory of the CPU left out"
                .to_owned()
        }
    }
}

/// The name of a kind of gap in machine-readable formats.
const fn kind(gap: &Gap) -> &'static str {
    match gap {
        Gap::NoTraces => "no-traces",
        Gap::NoStacks => "no-stacks",
        Gap::NoTimes => "no-times",
        Gap::TimesOutOfOrder(_) => "times-out-of-order",
        Gap::UnknownKeys(_) => "unknown-keys",
        Gap::UnknownActions(_) => "unknown-actions",
        Gap::UnknownStates(_) => "unknown-states",
        Gap::InconsistentSegments(_) => "inconsistent-segments",
        Gap::HostMemory { .. } => "host-memory",
        Gap::FromProfiler => "from-profiler",
    }
}

/// What a trace does not tell of itself: kinds and words.
pub(super) fn disagreements(agreement: &Agreement) -> Vec<(&'static str, String)> {
    let older = agreement.blocks_without_alloc - agreement.blocks_evicted.min(agreement.blocks_without_alloc);
    [
        (older, "born-before", "alive at the end", "older than the recording"),
        (
            agreement.blocks_evicted,
            "history-evicted",
            "alive at the end",
            "recorded once, but pushed out of the history",
        ),
        (agreement.frees_without_alloc, "frees-without-alloc", "freed", "older than what the history holds"),
        (agreement.lost_frees, "lost-frees", "overwritten", "freed at a moment that is not in the history"),
        (
            agreement.allocations_without_block,
            "no-block",
            "alive in the history",
            "not in the final segments",
        ),
    ]
    .into_iter()
    .filter(|(blocks, ..)| *blocks > 0)
    .map(|(blocks, kind, state, what)| (kind, format!("{} {state}: {what}", count(blocks, "block"))))
    .collect()
}

fn listed(names: &[(String, usize)], detail: Detail) -> String {
    let names: Vec<String> =
        names.iter().map(|(name, times)| format!("`{}` ({times}x)", shown_name(name))).collect();
    some(&names, detail)
}

/// As many as are wanted.
fn some(names: &[String], detail: Detail) -> String {
    let most = if detail == Detail::Verbose { usize::MAX } else { MOST_NAMES };
    let mut shown: Vec<String> = names.iter().take(most).cloned().collect();
    if names.len() > shown.len() {
        shown.push(format!("{} more", names.len() - shown.len()));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Branch;

    #[test]
    fn what_a_program_decided_without_values_is_listed() {
        let branch = |line| Branch { file: "train.py".to_owned(), line, end: line };
        let mut modelled = Modelled::default();
        modelled.branches.extend((1..=7).map(branch));
        let words = model_words(&modelled, Detail::Normal);
        assert!(words.contains("decided by some of them at train.py:1, train.py:2, "), "{words}");
        assert!(words.ends_with("train.py:5, 2 more"), "{words}");
        assert!(!model_words(&Modelled::default(), Detail::Normal).contains("decided"));
        modelled.never_steps = true;
        let words = model_words(&modelled, Detail::Normal);
        assert!(words.ends_with("2 more, and took no step of its optimizer"), "{words}");
    }

    #[test]
    fn what_a_program_compiles_is_said_to_have_run_eagerly() {
        let mut modelled = Modelled::default();
        modelled.runs_eagerly = true;
        let words = model_words(&modelled, Detail::Normal);
        assert!(
            words.ends_with("are not known; what it compiles (torch.compile) ran operator by operator"),
            "{words}"
        );
    }
}
