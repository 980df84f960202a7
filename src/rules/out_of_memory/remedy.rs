//! What to do about a request that failed.
//!
//! In: the failure, its cause, and what stood then. Out: the first thing that helps: what piles up, a setting under which the request fits,
//! what one line makes and nothing frees, and then what is largest.

use std::collections::BTreeMap;

use super::{RoleBytes, Shortage, met_own_limit};
use crate::facts::{Facts, Failure, Growing, Trial};
use crate::finding::{Absent, Silence};
use crate::frames::PhaseSign;
use crate::program::Phase;
use crate::role::Role;
use crate::rules::place;
use crate::rules::trial::GROWING;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, StackId, count};

/// The remedy.
pub(super) fn remedy(
    facts: &Facts,
    failure: &Failure,
    (cause, phase): (Shortage, Phase),
    standing: &RoleBytes,
    fitting: Option<&Trial>,
) -> String {
    if cause == Shortage::TooLarge {
        return TAKE_LESS.to_owned();
    }
    if let Some(piled) = piled_up(facts, failure) {
        return piled;
    }
    let smaller = fitting
        .map(let_it_fit)
        .or_else(|| kept_by_a_line(facts, failure))
        .unwrap_or_else(|| by_cause(facts, failure, (cause, phase), standing).to_owned());
    if cause == Shortage::Capacity && met_own_limit(facts, failure) {
        raise_the_limit(&smaller)
    } else {
        smaller
    }
}

/// What helps a request for more than there is, whatever else is freed.
const TAKE_LESS: &str = "make this one tensor smaller, freeing others does not help: look for a size that is not meant (a broadcast, an outer \
                         product, a mask of all pairs), or work in pieces (`torch.split`)";

/// The device had what was wanted: the program, or who started it, allows itself less.
fn raise_the_limit(otherwise: &str) -> String {
    format!(
        "raise the limit that the process has (`torch.cuda.set_per_process_memory_fraction`, or `per_process_memory_fraction` in \
         PYTORCH_CUDA_ALLOC_CONF); or {otherwise}"
    )
}

/// Where the request would have fitted without what had piled up, or most of what was in use had, more memory, a setting or a smaller batch only
/// put the failure off.
fn piled_up(facts: &Facts, failure: &Failure) -> Option<String> {
    let knows_first = facts.evidence.first_iteration().is_ok();
    let is_sure = |one: &&Growing| one.growth.confidence(knows_first) > Confidence::Low;
    let sure: Vec<&Growing> = facts.growing().iter().filter(is_sure).collect();
    let stood = |id: &&AllocationId| {
        facts.timeline.allocation(**id).is_some_and(|one| one.alive_after(failure.event))
    };
    let piled: Bytes = sure
        .iter()
        .map(|one| facts.bytes(&one.stays.iter().filter(stood).copied().collect::<Vec<_>>()))
        .sum();
    let would_fit = piled >= failure.wanted;
    let fastest = sure.first().and_then(|one| place(facts, one.site)).map_or_else(String::new, |line| {
        format!(" (made at line {} of {}(); `growing-residency` tells of it)", line.line, line.function)
    });
    (would_fit || piled.times(2) > failure.in_use).then(|| {
        format!(
            "mend what piles up first{fastest}, {piled} of what was in use: anything else only puts it off"
        )
    })
}

/// A setting under which the replay got the memory.
fn let_it_fit(fitting: &Trial) -> String {
    match fitting.conf().as_str() {
        GROWING => {
            format!("let segments grow, and the request that failed fits: PYTORCH_CUDA_ALLOC_CONF={GROWING}")
        }
        other => format!("set PYTORCH_CUDA_ALLOC_CONF={other}, and the request that failed fits"),
    }
}

/// Where most of what was in use comes from one line outside any model, of which nothing was let go: a program that collects, whether or not
/// it goes round in a loop. (The layers of a model keep activations in the same way, and are to keep them.)
fn kept_by_a_line(facts: &Facts, failure: &Failure) -> Option<String> {
    let mut made: BTreeMap<StackId, (Bytes, usize, bool)> = BTreeMap::new();
    let before = |one: &Allocation| one.alloc.is_some_and(|born| born < failure.event);
    for (id, one) in facts.timeline.iter().filter(|(_, one)| before(one)) {
        let free = matches!(facts.role(id), Role::Unknown | Role::Input | Role::Activation | Role::Temporary);
        let Some(stack) = one.stack.filter(|_| free) else { continue };
        let (bytes, tensors, frees) = made.entry(stack).or_default();
        *bytes += one.bytes;
        *tensors += 1;
        *frees |= !one.alive_after(failure.event);
    }
    let (stack, (bytes, tensors, frees)) = made.into_iter().max_by_key(|(_, (bytes, ..))| *bytes)?;
    let calls = |frame| facts.frames.phase(frame) == PhaseSign::ModuleCall;
    let in_a_model = facts.frames.python(stack).iter().any(|frame| calls(*frame));
    let collects = tensors > 1 && !frees && !in_a_model && facts.user_frame(stack).is_some();
    (collects && bytes.times(2) > failure.in_use).then(|| {
        let kept = count(tensors, "tensor");
        format!(
            "one line made {bytes} of what was in use, {kept}, and none of it was freed: keep fewer at a time, keep them on the \
             host (.cpu()), or make each when it is needed"
        )
    })
}

/// Whether the program has gone through whole iterations without a backward pass or a step: nothing that it makes waits for one.
fn only_infers(facts: &Facts) -> bool {
    let trains = facts.evidence.steps() != Err(Silence::NotApplicable(Absent::Training));
    !trains && facts.program.iterations.iter().any(|one| one.complete)
}

/// By what stood there, largest first.
fn by_cause(
    facts: &Facts,
    failure: &Failure,
    (cause, phase): (Shortage, Phase),
    standing: &RoleBytes,
) -> &'static str {
    // What a step makes for all parameters at once; one that goes tensor by tensor makes no such thing.
    let temporaries = standing.iter().find(|(role, ..)| *role == Role::Temporary).map(|(_, bytes, _)| *bytes);
    let at_once = temporaries.is_some_and(|bytes| bytes >= failure.wanted);
    match cause {
        Shortage::TooLarge => TAKE_LESS,
        Shortage::Pieces => {
            "make the requests alike: pad to a few fixed lengths, and run the largest batch first"
        }
        Shortage::Elsewhere => {
            "free the other stream's cache first: `torch.cuda.empty_cache()`, or allocate on the stream that has it"
        }
        Shortage::Capacity => match (standing.first().map(|(role, ..)| *role), phase) {
            (Some(Role::Activation | Role::Temporary | Role::Unknown), _)
                if facts.module_calls().is_empty() && only_infers(facts) =>
            {
                "make fewer tensors of that size at a time: work in place (`x.mul_(y)` for `x * y`), let go of what is no longer needed (`del`), \
                 or go through it in slices (`torch.split`)"
            }
            (Some(Role::Activation), Phase::Evaluation) => {
                "run the evaluation without autograd, `with torch.inference_mode():`; if it is, give it smaller batches"
            }
            (Some(Role::Activation), _) if only_infers(facts) => {
                "give the model smaller batches or shorter inputs, or use an operator that makes no tensor of that size (for attention \
                 `torch.nn.functional.scaled_dot_product_attention`); without autograd, `with torch.inference_mode():`, if it is not"
            }
            (Some(Role::Activation), _) => {
                "keep fewer activations: a smaller batch, or `torch.utils.checkpoint.checkpoint(block, x, \
                 use_reentrant=False)`"
            }
            (_, Phase::OptimizerStep) if at_once => {
                "make the step smaller: `fused=True`, or one without `foreach` (`foreach=False`); or the optimizer: 8-bit \
                 states, or sharded ones (`ZeroRedundancyOptimizer`)"
            }
            (Some(Role::OptimizerState), _) | (_, Phase::OptimizerStep) => {
                "make the optimizer smaller: 8-bit states, one that keeps fewer (Adafactor, SGD), or sharded ones \
                 (`ZeroRedundancyOptimizer`)"
            }
            (Some(Role::Parameter | Role::Buffer), _) => {
                "make the weights smaller: load them in bfloat16 (`dtype=torch.bfloat16`), quantize them, or spread them over \
                 several GPUs (FSDP, `device_map=\"auto\"`)"
            }
            _ => {
                "make the largest of what is listed smaller: a smaller batch, lower precision (`torch.autocast`), or \
                  more GPUs"
            }
        },
    }
}
