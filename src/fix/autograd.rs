//! Passes whose graph nothing uses.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::case::Case;
use super::flow::Variable;
use super::script::{Edit, Reason, range};
use super::tree::{self, bound_names, callee, dotted, method};
use super::{Applicability, Draft, Saves};

pub(super) const SAFE: &str = "nothing in the file differentiates what it computes";

/// Functions that train, or differentiate.
const STEPS: [&str; 11] = [
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "requires_grad_",
    "set_grad_enabled",
    "step",
    "vjp",
    "zero_grad",
];

/// Runs a pass without autograd: all of its function, or the one statement.
pub(super) fn unused(case: &Case<'_>) -> Result<Draft, Reason> {
    evaluation(case).or_else(|_| statement(case))
}

/// Runs a function that evaluates without autograd.
pub(super) fn evaluation(case: &Case<'_>) -> Result<Draft, Reason> {
    let (_, function) = case.place.function().ok_or("the line is in no function")?;
    if !evaluates(case, function) {
        return Err("its function does not only evaluate".to_owned());
    }
    let torch = case.torch()?;
    if case.flow.reaches_backward([Variable::Returned(function.name.to_string())]) {
        return Err(format!("what `{}` returns may be differentiated", function.name));
    }
    if keeps_for_backward(case, function.body.iter(), Some(function)) {
        return Err(format!("what `{}` keeps may be differentiated", function.name));
    }
    let called = called(case, function.body.iter()).unwrap_or_default();
    let all: Vec<usize> = called.iter().chain([&function]).map(|of| of.range.start().to_usize()).collect();
    let made = case.flow.made_in(all.iter().copied());
    let (applicability, why) = seen(case, &made, (all, false))?;
    if let Some(edit) = enabled(case, torch) {
        return Ok(Draft {
            title: "evaluate without autograd".to_owned(),
            applicability: Applicability::Unsafe,
            saves: Saves::All,
            why: "somebody asked for gradients here, although nothing in the file uses them".into(),
            edits: vec![edit],
        });
    }
    let decorators = function.decorator_list.iter().map(|one| case.script.words(one)).collect::<Vec<_>>();
    if decorators.iter().any(|one| one.contains("jit") || one.contains("script")) {
        return Err(format!("`{}` is compiled as it stands, decorators and all", function.name));
    }
    if function.is_async || tree::suspends(&function.body) {
        return Err(format!(
            "`{}` is suspended while it runs, and its callers would run without autograd",
            function.name
        ));
    }
    Ok(Draft {
        title: format!("run `{}` without autograd", function.name),
        applicability,
        saves: Saves::All,
        why,
        edits: vec![decorate(case, function, &format!("@{torch}.no_grad()"))?],
    })
}

/// Whether the file shows all that becomes of some values; where another file may get them, how. No edit where something asks whether
/// they have a graph: in the functions that begin at these places (`within`), or anywhere later.
pub(super) fn seen(
    case: &Case<'_>,
    values: &[Variable],
    (within, already): (Vec<usize>, bool),
) -> Result<(Applicability, Cow<'static, str>), Reason> {
    if let Some(by) = case.flow.asked(values.iter().cloned(), within) {
        return Err(format!("`{by}` is asked of what would have no graph any more"));
    }
    Ok(match case.flow.leaves_file(values, already) {
        Some(how) => (Applicability::Unsafe, format!("another file may differentiate it: {how}").into()),
        None => (Applicability::Safe, SAFE.into()),
    })
}

/// Whether a function puts a model into evaluation before the line, and trains nothing.
fn evaluates(case: &Case<'_>, function: &StmtFunctionDef) -> bool {
    let line = case.place.innermost().map(|step| step.statement().start());
    let evals = tree::calls(&function.body)
        .into_iter()
        .any(|call| method(call).is_some_and(|(_, name)| name == "eval") && Some(call.start()) < line);
    evals && !trains(case, function.body.iter())
}

/// Whether some code, or a function of the file that it calls, puts something where it stays and may be differentiated.
fn keeps_for_backward<'a>(
    case: &Case<'a>,
    code: impl Iterator<Item = &'a Stmt>,
    own: Option<&'a StmtFunctionDef>,
) -> bool {
    let called = called(case, code).unwrap_or_default();
    case.flow.leaves_for_backward(called.into_iter().chain(own))
}

/// Whether some code trains, itself or through the functions of the file that it calls.
fn trains<'a>(case: &Case<'a>, code: impl Iterator<Item = &'a Stmt>) -> bool {
    called(case, code).is_none()
}

/// The functions of the file that some code calls, and those that these call; nothing where any of it trains.
fn called<'a>(case: &Case<'a>, code: impl Iterator<Item = &'a Stmt>) -> Option<Vec<&'a StmtFunctionDef>> {
    let mut functions: BTreeMap<&str, Vec<&'a StmtFunctionDef>> = BTreeMap::new();
    for step in tree::all_statements(case.script.body) {
        if let Stmt::FunctionDef(of) = step.statement() {
            functions.entry(&of.name).or_default().push(of);
        }
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut found: Vec<&'a StmtFunctionDef> = Vec::new();
    let mut calls: Vec<&'a ExprCall> = tree::calls(code);
    while let Some(call) = calls.pop() {
        let Some(name) = callee(call) else { continue };
        // `model.train()` only switches; a function of the file is looked into.
        let switches = name == "train" && method(call).is_some() && call.arguments.len() <= 1;
        let own = functions.get(name).filter(|_| !switches);
        let says_so =
            ["train", "fit", "learn", "backward", "optimize"].iter().any(|word| name.contains(word));
        if STEPS.contains(&name) || own.is_none() && says_so && !switches {
            return None;
        }
        if !switches && known.insert(name) {
            found.extend(own.into_iter().flatten().copied());
            calls.extend(own.into_iter().flatten().flat_map(|function| tree::calls(&function.body)));
        }
    }
    Some(found)
}

/// Puts a line before `def`, behind other decorators.
fn decorate(case: &Case<'_>, function: &StmtFunctionDef, line: &str) -> Result<Edit, Reason> {
    let text = case.script.text();
    let name = function.name.start().to_usize();
    let start = case.script.line_start(name);
    let head = text.get(start..name).unwrap_or_default();
    let code = head.trim_start();
    let indent = head.get(..head.len() - code.len()).unwrap_or_default();
    if code.trim_end() != "def" {
        return Err(format!("the head of `{}` has an unusual form", function.name));
    }
    Ok(Edit::new(start..start, format!("{indent}{line}{}", case.script.line_break())))
}

/// A block around the place that switches autograd on, as one that does not.
fn enabled(case: &Case<'_>, torch: &str) -> Option<Edit> {
    case.place.inside().iter().find_map(|step| {
        let Stmt::With(of) = step.statement() else { return None };
        let [item] = &of.items[..] else { return None };
        let Expr::Call(call) = &item.context_expr else { return None };
        let enables = dotted(&call.func)? == format!("{torch}.enable_grad");
        enables.then(|| Edit::new(range(&*call.func), format!("{torch}.no_grad")))
    })
}

/// Runs one statement without autograd.
fn statement(case: &Case<'_>) -> Result<Draft, Reason> {
    let statement = case.statement()?;
    let torch = case.torch()?;
    let uses = || "what the line computes may be differentiated later".to_owned();
    let names: Vec<&str> = match statement {
        Stmt::Assign(_) | Stmt::AnnAssign(_) => {
            bound_names(statement).ok_or("the line assigns to more than names")?
        }
        // A call for its effect may keep what it computes anywhere.
        _ => return Err("the line is no plain assignment".to_owned()),
    };
    if trains(case, std::iter::once(statement)) || tree::suspends([statement]) {
        return Err(uses());
    }
    let keys: Vec<Variable> = names.iter().map(|name| case.key(&case.place, name)).collect();
    let is_kept = keeps_for_backward(case, std::iter::once(statement), None);
    if is_kept || case.flow.reaches_backward(keys.iter().cloned()) {
        return Err(uses());
    }
    let called: Vec<usize> = called(case, std::iter::once(statement))
        .into_iter()
        .flatten()
        .map(|of| of.range.start().to_usize())
        .collect();
    let values: Vec<Variable> = keys.into_iter().chain(case.flow.made_in(called.iter().copied())).collect();
    let (applicability, why) = seen(case, &values, (called, false))?;
    Ok(Draft {
        title: format!("compute `{}` without autograd", names.join("`, `")),
        applicability,
        saves: Saves::All,
        why,
        edits: case.script.wrap(statement, &format!("with {torch}.no_grad():"))?,
    })
}
