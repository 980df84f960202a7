//! Steps that were left out: by `GradScaler`, because gradients overflowed, or by a program that decides by itself.

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, Unscaling};
use crate::finding::{Finding, Measure, Quantity, Severity};
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::unit::{Confidence, count, percent};

declare_rule! {
    /// `GradScaler` found infinite gradients and did not step, or the program left its steps out.
    SkippedOptimizerStep = "skipped-optimizer-step", Amp, Info,
    needs: [History, Stacks, Beginning],
    summary: "optimizer steps are skipped",
}

/// From so many tries without any step on, the model does not train as far as the recording shows. `GradScaler`'s own
/// initial scale of 65,536 costs a try or two, rarely more.
static NEVER: Threshold<usize> = Threshold::new("rules::skipped_optimizer_step::NEVER", 3);

/// Once a program may leave its step out to look at gradients.
const FEWEST_BY_HAND: usize = 2;

impl SkippedOptimizerStep {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let tries = tries(facts);
        if tries.is_empty() {
            return by_hand(facts).into_iter().collect();
        }
        let skipped: Vec<Unscaling> = tries.iter().filter(|one| !one.stepped).copied().collect();
        // After the very last try the recording may have ended before its step.
        let alone = tries.last().is_some_and(|last| !last.stepped) && skipped.len() == 1;
        let Some(first) = skipped.first().copied().filter(|_| !alone) else { return Vec::new() };
        let never = skipped.len() == tries.len() && skipped.len() >= NEVER.get();
        let told = move |worth: &Worth| tell(facts, &tries, (skipped.len(), &first), worth);
        let claim = Claim::new(&Self::META, [], Mending::default(), told).sure(Confidence::High);
        vec![claim.at_most(if never { Severity::Error } else { Severity::Info })]
    }
}

/// The steps that the program itself leaves out, although its others show that there is an optimizer.
fn by_hand<'f>(facts: &'f Facts<'f>) -> Option<Claim<'f>> {
    let passes = facts.passes_for_steps();
    let skipped: Vec<Unscaling> = passes.iter().filter(|one| !one.stepped).copied().collect();
    let first = skipped.first().copied().filter(|_| skipped.len() >= FEWEST_BY_HAND)?;
    if skipped.len() == passes.len() {
        return None;
    }
    let leading = passes.iter().take_while(|one| !one.stepped).count();
    let told = move |worth: &Worth| {
        let telling = Telling {
            message: if leading == skipped.len() {
                format!("the first {} are left out", count(leading, "optimizer step"))
            } else {
                format!("{} of {} are left out", skipped.len(), count(passes.len(), "optimizer step"))
            },
            help: "if gradients overflow, begin with a lower loss scale or use bfloat16; a loss that no step uses needs no backward pass"
                .to_owned(),
            place: Anchor::of_stack(facts, Some(first.stack)),
            label: "gradients are made here and cleared, and no step comes between".to_owned(),
            related: Vec::new(),
            evidence: skipped_evidence(skipped.len(), passes.len()),
        };
        Finding { phase: Phase::OptimizerStep, ..telling.told(facts, &SkippedOptimizerStep::META, worth) }
    };
    let claim = Claim::new(&SkippedOptimizerStep::META, [], Mending::default(), told);
    Some(claim.sure(Confidence::Medium).at_most(Severity::Info))
}

fn skipped_evidence(skipped: usize, all: usize) -> Vec<Measure> {
    let share = skipped as f64 / all as f64;
    vec![
        measure(
            "skipped",
            Quantity::Count(skipped as u64),
            format!("{skipped} of {} skipped", count(all, "step")),
        ),
        measure("share", Quantity::Ratio(share), percent(share)),
    ]
}

/// The tries to step that can be judged. A file that annotates no optimizers shows a step only where it allocates: the one
/// that makes the state; so only tries before it count.
fn tries(facts: &Facts) -> Vec<Unscaling> {
    let tries = facts.unscalings();
    let annotated = |name| facts.snapshot.text(name).starts_with("Optimizer.");
    if facts.snapshot.annotations.iter().any(|annotation| annotated(annotation.name)) {
        return tries;
    }
    let until = tries.iter().position(|one| one.stepped).map_or(0, |first| first + 1);
    tries.into_iter().take(until).collect()
}

fn tell(facts: &Facts, tries: &[Unscaling], (skipped, first): (usize, &Unscaling), worth: &Worth) -> Finding {
    let leading = tries.iter().take_while(|one| !one.stepped).count();
    let never = leading == tries.len();
    let message = if never {
        format!("the gradient scaler skipped every optimizer step ({})", count(skipped, "try"))
    } else if leading == skipped {
        format!("the gradient scaler skipped the first {}", count(leading, "optimizer step"))
    } else {
        format!("the gradient scaler skipped {skipped} of {}", count(tries.len(), "optimizer step"))
    };
    let help = if never || leading == skipped {
        "start with a lower scale: torch.amp.GradScaler(\"cuda\", init_scale=2.0**10), or use bfloat16"
    } else {
        "use bfloat16 autocast, or clip gradients after scaler.unscale_(optimizer)"
    };
    let mut evidence = skipped_evidence(skipped, tries.len());
    if leading > 0 && !never {
        evidence.push(measure(
            "leading",
            Quantity::Count(leading as u64),
            format!("optimizer state appears only after {}", count(leading, "skipped step")),
        ));
    }
    let telling = Telling {
        message,
        help: help.to_owned(),
        place: Anchor::of_stack(facts, Some(first.stack)),
        label: "infinite gradients are found here, and the optimizer is not called".to_owned(),
        related: Vec::new(),
        evidence,
    };
    Finding { phase: Phase::OptimizerStep, ..telling.told(facts, &SkippedOptimizerStep::META, worth) }
}
