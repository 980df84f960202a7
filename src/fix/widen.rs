//! Gradients of parameters that no optimizer has, beside one that clears its own.

use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::case::Case;
use super::script::{Edit, range};
use super::tree::{self, dotted, method};
use super::{Applicability, Draft, Saves};

/// Lets the one clearing of the file clear the whole model of which the optimizer has a part; nothing where it is not certain which that is.
pub(super) fn widened(case: &Case<'_>, block: &[Stmt], optimizer: &str) -> Option<Draft> {
    let calls = tree::calls(case.script.body).into_iter();
    let clearings: Vec<&Expr> =
        calls.filter_map(method).filter(|(_, name)| *name == "zero_grad").map(|(on, _)| on).collect();
    let [clearing] = clearings[..] else { return None };
    if dotted(clearing)? != optimizer {
        return None;
    }
    let [Expr::Call(made)] = case.assigned(optimizer)[..] else { return None };
    let part = part(made)?;
    // `model` of `model.fc`, `self.model` of `self.model.fc`.
    let depth = if part.starts_with("self.") { 2 } else { 1 };
    let names: Vec<&str> = part.split('.').collect();
    let model = names.get(..depth).filter(|_| names.len() > depth)?.join(".");
    let is_run = tree::calls(block).iter().any(|call| dotted(&call.func).as_ref() == Some(&model));
    is_run.then(|| Draft {
        title: format!("clear the gradients of all of `{model}`"),
        applicability: Applicability::Unsafe,
        saves: Saves::All,
        why: "the step uses the same gradients as before, but whatever looks at the others finds none".into(),
        edits: vec![Edit::new(range(clearing), model)],
    })
}

/// The part of a model whose parameters an optimizer is made of: `model.fc` of `SGD(model.fc.parameters(), lr=1)`.
fn part(made: &ExprCall) -> Option<String> {
    let Expr::Call(parameters) = made.arguments.args.first()? else { return None };
    let (of, name) = method(parameters)?;
    (name == "parameters").then(|| dotted(of))?
}
