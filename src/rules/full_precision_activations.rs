//! Advice: activations make a good part of the peak, and nothing shows that they are in a half-width format.

use super::{declare_rule, measure, responsible, shown};
use crate::facts::{Changes, Facts};
use crate::finding::{Finding, Impact, Value};
use crate::program::{Origin, Phase};
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// Activations make a good part of the peak, and nothing shows that they are in a half-width format.
    FullPrecisionActivations = "full-precision-activations", Advice, Info,
    needs: [History, Stacks, Iterations, Optimizer],
    summary: "activations make a good part of the peak, with no sign of autocast",
}

/// The share of the peak that activations have to make.
const SHARE: f64 = 0.4;
/// What the names of frames hold where a program runs in a half-width format: autocast's own, the gradient scaler's, and the types in
/// PyTorch's C++ templates.
const SIGNS: [&str; 4] = ["autocast", "grad_scaler", "BFloat16", "c10::Half"];

impl FullPrecisionActivations {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let activations = facts.at_steady_peak(Role::Activation);
        let bytes = facts.bytes(&activations);
        if bytes.share_of(facts.steady().peak) < SHARE || !is_plain(facts) {
            return Vec::new();
        }
        vec![report(facts, &activations, bytes)]
    }
}

/// Whether the frames would show mixed precision, and do not. Casts happen in C++: without its frames nobody can tell.
fn is_plain(facts: &Facts) -> bool {
    let stacks = &facts.snapshot.stacks;
    let is_native = |id| facts.code.vocabulary.origin(id) == Origin::Native;
    let is_sign = |id| {
        stacks.frame(id).is_some_and(|frame| {
            let (name, file) = (facts.snapshot.text(frame.name), facts.snapshot.text(frame.file));
            SIGNS.iter().any(|sign| name.contains(sign) || file.contains(sign))
        })
    };
    stacks.frame_ids().any(is_native) && !stacks.frame_ids().any(is_sign)
}

fn saving(facts: &Facts, bytes: Bytes) -> Bytes {
    let without = Changes::removing(facts.with_role(Role::Activation).map(|(id, _)| id));
    Bytes(bytes.get() / 2).min(without.saving(facts.timeline))
}

fn report(facts: &Facts, activations: &[AllocationId], bytes: Bytes) -> Finding {
    let share = bytes.share_of(facts.steady().peak);
    let message =
        format!("activations are {bytes}, {} of the peak, with no sign of autocast", percent(share));
    let help = "if memory is what limits you, run the forward pass in half the width:\n  with torch.autocast(\"cuda\", \
                dtype=torch.bfloat16): loss = criterion(model(x), y)";
    let mut finding = FullPrecisionActivations::META.finding(facts, message, help);
    let guilty = facts.guilty(activations.iter().copied());
    finding.location = responsible(facts, &guilty);
    finding.label = format!("{} made under this line", count(activations.len(), "activation"));
    finding.stack = guilty.first().map(|one| shown(facts, one.stack)).unwrap_or_default();
    finding.phase = Phase::Forward;
    finding.confidence = Confidence::Low;
    finding.evidence = vec![
        measure("activations", Value::Bytes(bytes), format!("{bytes} of activations at the peak")),
        measure(
            "assumption",
            Value::Text("float32".to_owned()),
            "estimate: half of them, if they are float32 now, which a recording does not tell".to_owned(),
        ),
    ];
    finding.impact = Impact { peak: Some(saving(facts, bytes)), ..Impact::default() };
    finding
}
