//! What is said of a copy of the weights.

use super::{Copied, DuplicateWeights, Kind};
use crate::facts::Facts;
use crate::finding::{Finding, Quantity, Severity};
use crate::rules::claim::{Anchor, Telling, Worth, related};
use crate::rules::measure;
use crate::unit::{Bytes, count, percent};

/// The finding about copies of one kind that one line makes.
pub(super) fn tell(facts: &Facts, copies: &[Copied], worth: &Worth) -> Finding {
    let meta = &DuplicateWeights::META;
    let Some(largest) = copies.iter().max_by_key(|copy| copy.bytes) else {
        return Finding::of(meta.name, meta.group, Severity::Info);
    };
    let bytes = largest.bytes;
    let (message, help, label) = words(largest.kind, bytes);
    let tensors = largest.tensors.as_slice();
    let made = Anchor::responsible(facts, tensors, false);
    let (place, related) = match (largest.kind, made) {
        // The line that makes the other set is what makes this one spare.
        (Kind::Stacked | Kind::Converted | Kind::Renewed | Kind::Part, made) => {
            let place = Anchor::At(largest.frame, None, None);
            let other = related(facts, made.frame(), &place, "what is spare is made here");
            (place, other.into_iter().collect())
        }
        (Kind::Twice, _) | (_, Anchor::Nowhere) => (Anchor::At(largest.frame, None, None), Vec::new()),
        (_, known @ Anchor::At(..)) => (known, Vec::new()),
    };
    let ends = tensors.iter().filter_map(|id| facts.timeline.allocation(*id)).map(|one| facts.ends_held(one));
    let ends = ends.max().unwrap_or(0);
    let telling = Telling {
        message,
        help: help.to_owned(),
        place,
        label: label.to_owned(),
        related,
        evidence: vec![
            measure("copy", Quantity::Bytes(bytes), format!("{bytes} in {}", count(tensors.len(), "tensor"))),
            measure(
                "covered",
                Quantity::Ratio(largest.covered),
                format!("equal in size to {} of the model's weights", percent(largest.covered)),
            ),
            measure("copies", Quantity::Count(copies.len() as u64), count(copies.len(), "such copy")),
            measure(
                "ends-outlived",
                Quantity::Count(ends as u64),
                format!("alive over {}", count(ends, "iteration end")),
            ),
        ],
    };
    telling.told(facts, meta, worth)
}

/// Message, remedy and label.
fn words(kind: Kind, bytes: Bytes) -> (String, &'static str, &'static str) {
    const ON_THE_HOST: &str = "keep it on the host: {k: v.detach().cpu() for k, v in model.state_dict().items()}, or save it to disk";
    match kind {
        Kind::Loaded | Kind::LoadedByTheEnd => (
            format!("a loaded checkpoint stays next to the model ({bytes})"),
            "load to the host and let go of it: torch.load(path, map_location=\"cpu\"); del checkpoint",
            "loaded to the device here and never freed",
        ),
        Kind::CopiedInLoop => (
            format!("a copy of the model's weights stays on the device ({bytes})"),
            ON_THE_HOST,
            "copied here while training runs",
        ),
        Kind::StateDict | Kind::HeldByObject => (
            format!("a copy of the model's state dict stays on the device ({bytes})"),
            ON_THE_HOST,
            "copied here before training, and held ever since",
        ),
        Kind::Base => (
            format!("copies of a frozen base model stay beside it ({bytes})"),
            "share one base: model.add_adapter(name, config) and model.set_adapter(name); a reference is the same model under `with model.disable_adapter():`",
            "copied here, though only adapters are trained",
        ),
        Kind::Gathered => (
            format!("the weights of all ranks stay in whole beside this rank's ({bytes})"),
            "gather them to the host: get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))",
            "gathered here while training runs, and kept",
        ),
        Kind::BuiltInLoop | Kind::Twice => (
            format!("as large a model as the first stays beside it ({bytes})"),
            "where one replaces the other, let go of the old one first, or keep it on the host: old.cpu(); where both compute, or one is an average of the other, all is well",
            "built here while the one before is there",
        ),
        Kind::Part => (
            format!("a model stays beside the copy of it that trains in a larger one ({bytes})"),
            "build the larger model around the original, without a copy; or let go of the original, or keep it on the host: original.cpu()",
            "copied here into what trains; each turn runs one model",
        ),
        Kind::Stacked => (
            format!("the members of an ensemble stay beside their stacked weights ({bytes})"),
            "let go of the members once they are stacked: params, buffers = stack_module_state(models); del models",
            "their weights are copied here into one tensor for all",
        ),
        Kind::Converted => (
            format!("the model that was cast stays beside the result ({bytes})"),
            "cast the model itself: model = model.to(torch.bfloat16); or let go of the original, or keep it on the host: original.cpu()",
            "copied here in another number format; each turn runs one model",
        ),
        Kind::SetAside => (
            format!("plain copies of the weights stay from before training ({bytes})"),
            "where they are put aside, keep them on the host: {k: p.detach().cpu() for k, p in model.named_parameters()}; what the program averages or steps back to may stay",
            "copied here, and held ever since",
        ),
        Kind::AsLarge => (
            format!("tensors of the weights' sizes stay on the device ({bytes})"),
            "where they are copies that are put aside, keep them on the host: {k: p.detach().cpu() for k, p in model.named_parameters()}; what the program computes with may stay",
            "made here, one for each of the weights, and held ever since",
        ),
        Kind::Renewed => (
            format!("what the weights are computed from stays, and nothing trains ({bytes})"),
            "make the result permanent before the loop: torch.nn.utils.prune.remove(module, \"weight\"), remove_weight_norm(module) or parametrize.remove_parametrizations(module, \"weight\")",
            "this computes the weights again in each pass",
        ),
    }
}
