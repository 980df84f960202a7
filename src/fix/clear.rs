//! Gradients that are cleared nowhere, or too late.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::case::{Case, looks_at_gradients, sets_gradients};
use super::optimizer::{OptimizerStep, all_cleared, backwards, steps};
use super::script::{Edit, Reason};
use super::tree::{self, Names, Nesting, Statement, call_of, callee, method};
use super::widen::widened;
use super::{Applicability, Draft, Saves, watch};

const UNSEEN: &str = "the step is the last to use the gradients, and nothing looks at them between it and the next backward pass";
const WATCHED: &str = "a function of another file gets the model or its optimizer between the step and the next backward pass: \
     it finds no gradients any more, if it looks at them";

/// The share of the peak from which on a `zero_grad` before the backward pass is moved. PyTorch's own tutorials write
/// `zero_grad(); backward(); step()`: below a tenth whoever reads the program is better served by the idiom.
const WORTH_MOVING: f64 = 0.1;

/// Calls `zero_grad` after the step.
pub(super) fn missing(case: &Case<'_>) -> Result<Draft, Reason> {
    let statement = case.statement()?;
    let [backward, ..] = backwards([statement])[..] else {
        return Err("no backward pass stands at the line".to_owned());
    };
    // The outermost loop is what runs again and again; a function without one is called in one.
    let block = case.place.loops().last().and_then(|step| step.loop_body());
    let block = block.unwrap_or_else(|| case.place.scope());
    if looks_at_gradients(block) {
        return Err("the loop looks at `.grad` itself".to_owned());
    }
    if sets_gradients(case.script.body) {
        return Err("the program sets `.grad` itself".to_owned());
    }
    let all = steps(case, block);
    let passes = backwards(block);
    let next = passes.iter().map(Ranged::start).filter(|at| *at > backward.start()).min();
    let belongs = |one: &&OptimizerStep<'_>| {
        let at = one.step.statement().start();
        at > backward.end() && next.is_none_or(|next| at < next)
    };
    let mut own: Vec<&OptimizerStep<'_>> = all.iter().filter(belongs).collect();
    if own.is_empty() {
        return Err("no plain `optimizer.step()` follows the backward pass in its loop".to_owned());
    }
    if let [one] = own[..]
        && let Some(draft) = widened(case, block, &one.optimizer)
    {
        return Ok(draft);
    }
    let known = all_cleared(case)?;
    // Of several optimizers that take the same pass, those that are cleared leave nothing behind.
    let forgotten = |one: &&OptimizerStep<'_>| !known.contains(&one.optimizer);
    if own.iter().any(forgotten) {
        own.retain(forgotten);
    }
    for one in &own {
        unclear(case, &one.optimizer, &all, &known)?;
    }
    let mut edits = Vec::new();
    for one in &own {
        edits.push(case.script.insert_after(one.step.statement(), &[clear(one)])?);
    }
    // What other backward passes add is cleared at the end of the turn.
    let last = all.last().filter(|last| {
        passes.len() > 1 && !own.iter().any(|one| one.step.statement() == last.step.statement())
    });
    if let Some(last) = last {
        if !block.iter().any(|statement| statement == last.step.statement()) {
            return Err("several backward passes add to these gradients".to_owned());
        }
        let lines: Vec<String> = own.iter().map(|one| clear(one)).collect();
        edits.push(case.script.insert_after(last.step.statement(), &lines)?);
    }
    let mut others = other_loops(case, block, &own);
    others.retain(|other| !edits.contains(other));
    let (title, why) = told(&own, last.is_some(), !others.is_empty());
    edits.extend(others);
    Ok(Draft { title, applicability: Applicability::Unsafe, saves: Saves::All, why: why.into(), edits })
}

fn clear(one: &OptimizerStep<'_>) -> String {
    format!("{}.zero_grad(set_to_none=True)", one.optimizer)
}

/// What is put where, and what comes of it: of each optimizer that is cleared by its name.
fn told(own: &[&OptimizerStep<'_>], at_the_end: bool, in_others: bool) -> (String, String) {
    let mut names: Vec<&str> = Vec::new();
    for one in own {
        if !names.contains(&one.optimizer.as_str()) {
            names.push(&one.optimizer);
        }
    }
    let calls = names.iter().map(|name| format!("`{name}.zero_grad()`")).collect::<Vec<_>>().join(" and ");
    let behind = match own {
        [_] if in_others => "the step, in each loop that has one",
        [_] => "the step",
        _ => "their steps",
    };
    let again = if at_the_end { ", and once more at the end of the turn" } else { "" };
    let steps = format!("every step of `{}`", names.join("` and `"));
    (
        format!("call {calls} after {behind}{again}"),
        format!(
            "{steps} then uses the gradients of its own batches alone, and training takes another course"
        ),
    )
}

/// The same behind the steps of the same optimizer in the other loops of the function, where each has one backward pass: who forgets it
/// in the loop that trains has forgotten it in the one that warms up.
fn other_loops(case: &Case<'_>, block: &[Stmt], own: &[&OptimizerStep<'_>]) -> Vec<Edit> {
    let [one] = own else { return Vec::new() };
    let loops = tree::statements(case.place.scope()).into_iter().filter_map(|step| step.loop_body());
    let others = loops.filter(|body| {
        body.as_ptr() != block.as_ptr() && backwards(*body).len() == 1 && !looks_at_gradients(*body)
    });
    let alike = |body| match &steps(case, body)[..] {
        [step] if step.optimizer == one.optimizer => Some(step.step),
        _ => None,
    };
    let clear = [clear(one)];
    others
        .filter_map(alike)
        .filter_map(|step| case.script.insert_after(step.statement(), &clear).ok())
        .collect()
}

/// Makes sure that nothing clears an optimizer's gradients.
fn unclear(
    case: &Case<'_>,
    optimizer: &str,
    all: &[OptimizerStep<'_>],
    known: &[String],
) -> Result<(), Reason> {
    let made: Vec<&Expr> = case.assigned(optimizer);
    let names = |value: &&Expr| {
        let names = Names::in_expression(value);
        names.read.iter().chain(&names.attributes).map(ToString::to_string).collect::<Vec<_>>()
    };
    let of: Vec<String> = made.iter().flat_map(names).collect();
    for cleared in known {
        let is_other = all.iter().any(|one| one.optimizer == *cleared) && cleared != optimizer;
        let last = cleared.rsplit('.').next().unwrap_or_default().to_owned();
        let is_apart = !of.is_empty() && cleared != optimizer && !of.contains(&last);
        if !is_other && !is_apart {
            return Err(format!(
                "`{cleared}.zero_grad()` is there already. If it was not when this was recorded, record again; if it was, \
                 parameters that it does not have keep their gradients: freeze those that are not trained"
            ));
        }
    }
    Ok(())
}

/// Moves `zero_grad` behind the step.
pub(super) fn late(case: &Case<'_>) -> Result<Draft, Reason> {
    if case.share().is_none_or(|share| share < WORTH_MOVING) {
        return Err("it saves less than a tenth of the peak, and the order is the usual one".to_owned());
    }
    let clearing = case.statement()?;
    let call = call_of(clearing).and_then(method).filter(|(_, name)| *name == "zero_grad");
    let (on, _) = call.ok_or("no call of `zero_grad` stands at the line")?;
    let cleared = tree::dotted(on).ok_or("what is cleared is no plain name")?;
    let step = step_after(case, &cleared)?;
    let words = case.script.words(clearing).to_owned();
    if words.contains('\n') {
        return Err("the call of `zero_grad` has several lines".to_owned());
    }
    if let Some(reader) = reads_gradients_after(step) {
        return Err(format!("`{reader}` stands behind the step and may look at the gradients"));
    }
    let is_watched = watch::may_look(case, &cleared, clearing, step.statement());
    let own = case.place.innermost().ok_or("no statement stands at the line")?;
    let edits: Vec<Edit> = vec![
        case.script.remove(clearing, own.block.len() == 1)?,
        case.script.insert_after(step.statement(), std::slice::from_ref(&words))?,
    ];
    Ok(Draft {
        title: format!("move `{words}` behind the step"),
        applicability: if is_watched { Applicability::Unsafe } else { Applicability::Safe },
        saves: Saves::All,
        why: if is_watched { WATCHED } else { UNSEEN }.into(),
        edits,
    })
}

/// A function behind the step, in its block, that by its name works with gradients: their norm is logged there, or they are clipped too
/// late.
fn reads_gradients_after(step: Statement<'_>) -> Option<&str> {
    let behind = step.block.get(step.index + 1..)?;
    let calls = tree::calls(behind).into_iter().filter_map(callee);
    calls
        .into_iter()
        .find(|name| name.contains("grad_norm") || name.ends_with("grads") || name.ends_with("gradients"))
}

/// The one step that follows, in the function of the clearing or in the one that calls it.
fn step_after<'a>(case: &Case<'a>, cleared: &str) -> Result<Statement<'a>, Reason> {
    if backwards(case.script.body).len() != 1 {
        return Err("several backward passes of the file may add to these gradients".to_owned());
    }
    let clearings =
        tree::calls(case.script.body).into_iter().filter(|call| callee(call) == Some("zero_grad"));
    if clearings.count() != 1 {
        return Err("gradients are cleared at several places".to_owned());
    }
    if looks_at_gradients(case.script.body) {
        return Err("the program looks at `.grad` itself".to_owned());
    }
    let caller = case.callers.first().filter(|caller| cleared.starts_with("self.") && is_own(case, caller));
    for place in std::iter::once(&case.place).chain(caller) {
        let outer = steady(place)?;
        let after = |one: &OptimizerStep<'_>| one.step.statement().start() > outer[0].statement().end();
        let found: Vec<OptimizerStep<'_>> = steps(case, place.scope()).into_iter().filter(after).collect();
        match &found[..] {
            [] => {}
            [one] => return level_with(&outer, one.step),
            _ => return Err("several steps follow".to_owned()),
        }
    }
    Err("no plain `optimizer.step()` follows in the same function".to_owned())
}

/// Whether a caller belongs to the same object (`self` is another elsewhere), and the clearing to each of its runs.
fn is_own(case: &Case<'_>, caller: &Nesting<'_>) -> bool {
    caller.shares_class(&case.place) && is_called_by_self(case, caller) && runs_through(case)
}

/// Whether the caller's statement calls the function of the clearing on `self`.
fn is_called_by_self(case: &Case<'_>, caller: &Nesting<'_>) -> bool {
    let Some(function) = Case::function(&case.place) else { return false };
    let calls = tree::calls(caller.innermost().map(|step| step.statement())).into_iter();
    let mut own = calls.filter_map(method).filter(|(_, name)| *name == function.name.as_str());
    own.any(|(on, _)| tree::dotted(on).as_deref() == Some("self"))
}

/// Whether the function of the clearing is called at one place, and clears whenever it is.
fn runs_through(case: &Case<'_>) -> bool {
    let Some(function) = Case::function(&case.place) else { return false };
    let calls = tree::calls(case.script.body).into_iter();
    let is_called_once = calls.filter(|call| callee(call) == Some(function.name.as_str())).count() == 1;
    let is_outermost = case.place.inside().len() == 1;
    let ends_early = tree::statements(&function.body)
        .into_iter()
        .any(|step| matches!(step.statement(), Stmt::Return(_) | Stmt::Raise(_)));
    is_called_once && is_outermost && !ends_early
}

/// The statements around a place that run whenever it does, innermost first.
fn steady<'a>(place: &Nesting<'a>) -> Result<Vec<Statement<'a>>, Reason> {
    let mut steady: Vec<Statement<'a>> = Vec::new();
    for step in place.inside().iter().rev() {
        if !steady.is_empty() && !matches!(step.statement(), Stmt::With(_)) {
            break;
        }
        steady.push(*step);
    }
    if steady.is_empty() { Err("no statement stands at the line".to_owned()) } else { Ok(steady) }
}

/// The step, if it runs exactly as often as what comes before it, and nothing leaves in between.
fn level_with<'a>(outer: &[Statement<'a>], step: Statement<'a>) -> Result<Statement<'a>, Reason> {
    let uneven = || "the step does not follow every time".to_owned();
    for from in outer {
        let mut rest = from.block.iter().skip(from.index + 1);
        let to = rest.position(|one| one.range().contains_range(step.statement().range()));
        let Some(to) = to.map(|to| from.index + 1 + to) else { continue };
        // Through blocks that always run: `with`.
        let mut here = &from.block[to];
        while here != step.statement() {
            let Stmt::With(of) = here else { return Err(uneven()) };
            here = of
                .body
                .iter()
                .find(|one| one.range().contains_range(step.statement().range()))
                .ok_or_else(uneven)?;
        }
        let between = &from.block[from.index..=to];
        let leaves = tree::statements(between).into_iter().any(|one| {
            matches!(
                one.statement(),
                Stmt::Continue(_) | Stmt::Break(_) | Stmt::Return(_) | Stmt::Raise(_) | Stmt::Try(_)
            )
        });
        return if leaves { Err(uneven()) } else { Ok(step) };
    }
    Err(uneven())
}
