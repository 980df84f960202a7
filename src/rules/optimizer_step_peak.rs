//! Temporaries of an optimizer's step that set the peak of the run.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Changes, Facts, Guilty};
use crate::finding::{Finding, Impact, Severity, Value};
use crate::program::{Meaning, Phase};
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, count, percent};

declare_rule! {
    /// Temporaries of the optimizer's step set the peak.
    OptimizerStepPeak = "optimizer-step-peak", Peak, Warning,
    needs: [History, Stacks, Optimizer],
    summary: "temporaries of the optimizer's step set the peak",
}

/// The share of the peak that doing without the temporaries has to save.
const SAVED: f64 = 0.1;
/// Below this saving it is a note: nobody trades it.
const WORTH: Bytes = Bytes(256 << 20);
/// Optimizers of PyTorch that have a fused kernel, by the name of their file.
const FUSED: [&str; 4] = ["adam", "adamw", "sgd", "adagrad"];

impl OptimizerStepPeak {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let temporaries = temporaries(facts);
        let changes = Changes::removing(temporaries.iter().copied());
        let steady = facts.steady();
        let saved_later = changes.saving_within(facts.timeline, steady.events.clone());
        if saved_later.share_of(steady.peak) < SAVED {
            return Vec::new();
        }
        vec![report(facts, &temporaries, &changes, saved_later)]
    }
}

/// What steps make and give back before they end.
fn temporaries(facts: &Facts) -> Vec<AllocationId> {
    let made = facts.timeline.iter().filter(|(id, one)| {
        let short = matches!(facts.role(*id), Role::Temporary | Role::Unknown | Role::Workspace);
        short && one.alloc.is_some_and(|event| facts.phase(event) == Phase::OptimizerStep)
    });
    made.map(|(id, _)| id).collect()
}

fn report(facts: &Facts, temporaries: &[AllocationId], changes: &Changes, saved_later: Bytes) -> Finding {
    let steady = facts.steady();
    let at_peak: Vec<AllocationId> = temporaries
        .iter()
        .copied()
        .filter(|id| {
            let alive = facts.timeline.allocation(*id).zip(steady.peak_event);
            alive.is_some_and(|(one, at)| one.alive_after(at))
        })
        .collect();
    let bytes = facts.bytes(&at_peak);
    let guilty = facts.guilty(at_peak.iter().copied());
    let optimizer = guilty.iter().find_map(|one| optimizer_of(facts, one));
    let help = match optimizer {
        Some(name) if FUSED.contains(&name) => {
            "update in one kernel without temporaries: pass fused=True to the optimizer (or foreach=False)"
        }
        Some(_) => "update one tensor at a time: pass foreach=False to the optimizer",
        None => "update one tensor at a time and in place: torch.addcmul(..., out=buffer), p.add_(update)",
    };
    let message = format!("temporaries of the optimizer's step set the peak ({bytes})");
    let mut finding = OptimizerStepPeak::META.finding(facts, message, help);
    if saved_later < WORTH {
        finding.severity = Severity::Info;
    }
    finding.confidence = Confidence::High;
    let line: Option<FrameId> = facts.blame().narrowest(&guilty);
    finding.location = line.and_then(|frame| place(facts, frame));
    finding.label = format!("{} of {bytes} live here at the peak", count(at_peak.len(), "temporary tensor"));
    if let Some(first) = guilty.first() {
        finding.stack = shown(facts, first.stack);
    }
    finding.phase = Phase::OptimizerStep;
    let share = bytes.share_of(steady.peak);
    finding.evidence = vec![
        measure(
            "temporaries",
            Value::Bytes(bytes),
            format!("{bytes} of temporaries, {} of the peak", percent(share)),
        ),
        measure("tensors", Value::Count(at_peak.len() as u64), count(at_peak.len(), "tensor")),
        measure(
            "optimizer",
            Value::Text(optimizer.unwrap_or("unknown").to_owned()),
            optimizer.map_or(String::new(), |name| format!("torch.optim.{name}")),
        ),
    ];
    let saved = changes.saving(facts.timeline);
    finding.impact = Impact { peak: Some(saved), ..Impact::default() };
    finding
}

/// The file of PyTorch's optimizer that a stack runs in: `adam`.
fn optimizer_of<'a>(facts: &Facts<'a>, guilty: &Guilty) -> Option<&'a str> {
    let is_optimizer = |frame: &&FrameId| facts.code.vocabulary.meaning(**frame) == Meaning::Optimizer;
    let frame = facts.code.python(guilty.stack).iter().rev().find(is_optimizer)?;
    let file = facts.snapshot.text(facts.snapshot.stacks.frame(*frame)?.file);
    file.rsplit('/').next()?.strip_suffix(".py")
}
