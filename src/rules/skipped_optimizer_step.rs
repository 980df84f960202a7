//! Steps that `GradScaler` left out because gradients overflowed.

use super::claim::{Claim, Mending, Place, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, Unscaling};
use crate::finding::{Finding, Severity, Value};
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::unit::{Confidence, count, percent};

declare_rule! {
    /// `GradScaler` found infinite gradients and did not step.
    SkippedOptimizerStep = "skipped-optimizer-step", Amp, Info,
    needs: [History, Stacks, Beginning],
    summary: "the gradient scaler skips optimizer steps",
}

/// From so many tries without any step on, the model does not train as far as the recording shows. `GradScaler`'s own
/// initial scale of 65,536 costs a try or two, rarely more.
static NEVER: Threshold<usize> = Threshold::new("rules::skipped_optimizer_step::NEVER", 3);

impl SkippedOptimizerStep {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let tries = tries(facts);
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
    let share = skipped as f64 / tries.len() as f64;
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
    let mut evidence = vec![
        measure(
            "skipped",
            Value::Count(skipped as u64),
            format!("{} of {} skipped", skipped, count(tries.len(), "step")),
        ),
        measure("share", Value::Ratio(share), percent(share)),
    ];
    if leading > 0 && !never {
        evidence.push(measure(
            "leading",
            Value::Count(leading as u64),
            format!("optimizer state appears only after {}", count(leading, "skipped step")),
        ));
    }
    let telling = Telling {
        message,
        help: help.to_owned(),
        place: Place::of_stack(facts, Some(first.stack)),
        label: "infinite gradients are found here, and the optimizer is not called".to_owned(),
        related: Vec::new(),
        evidence,
    };
    Finding { phase: Phase::OptimizerStep, ..telling.told(facts, &SkippedOptimizerStep::META, worth) }
}
