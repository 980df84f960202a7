//! Advice: activations make a good part of the peak, and nothing shows that they are in a half-width format.

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Quantity};
use crate::frames::Owner;
use crate::lives::Changes;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// Activations make a good part of the peak, and nothing shows that they are in a half-width format.
    FullPrecisionActivations = "full-precision-activations", Advice, Info,
    needs: [History, Stacks, Iterations, Optimizer],
    summary: "activations make a good part of the peak, with no sign of autocast",
}

/// The share of the peak that activations have to make.
static SHARE: Threshold<f64> = Threshold::new("rules::full_precision_activations::SHARE", 0.4);

impl FullPrecisionActivations {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let activations = facts.at_steady_peak(Role::Activation);
        let bytes = facts.bytes(&activations);
        if bytes.share_of(facts.steady().peak) < SHARE.get() || !is_plain(facts) {
            return Vec::new();
        }
        let mending = Mending::estimate(saving(facts, bytes));
        let told = move |worth: &Worth| tell(facts, &activations, worth);
        vec![Claim::new(&Self::META, [], mending, told).sure(Confidence::Low)]
    }
}

/// Whether the frames would show mixed precision, and do not. Casts happen in C++: without its frames nobody can tell.
fn is_plain(facts: &Facts) -> bool {
    let stacks = &facts.snapshot.stacks;
    let is_native = |id| facts.frames.owner(id) == Owner::Native;
    let is_sign = |id| facts.frames.get(id).is_some_and(|frame| frame.half);
    stacks.frame_ids().any(is_native) && !stacks.frame_ids().any(is_sign)
}

fn saving(facts: &Facts, bytes: Bytes) -> Bytes {
    let without = Changes::removing(facts.with_role(Role::Activation).map(|(id, _)| id));
    Bytes(bytes.get() / 2).min(without.saving(facts.timeline))
}

fn tell(facts: &Facts, activations: &[AllocationId], worth: &Worth) -> Finding {
    let bytes = facts.bytes(activations);
    let share = percent(bytes.share_of(facts.steady().peak));
    let telling = Telling {
        message: format!("activations are {bytes}, {share} of the peak, with no sign of autocast"),
        help: "if memory is what limits you, run the forward pass in half the width:\n  with torch.autocast(\"cuda\", \
               dtype=torch.bfloat16): loss = criterion(model(x), y)"
            .to_owned(),
        place: Anchor::responsible(facts, activations, false),
        label: format!("{} made under this line", count(activations.len(), "activation")),
        related: Vec::new(),
        evidence: vec![
            measure("activations", Quantity::Bytes(bytes), format!("{bytes} of activations at the peak")),
            measure(
                "assumption",
                Quantity::Text("float32".to_owned()),
                "estimate: half of them, if they are float32 now, which a recording does not tell".to_owned(),
            ),
        ],
    };
    telling.told(facts, &FullPrecisionActivations::META, worth)
}
