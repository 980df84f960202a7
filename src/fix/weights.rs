//! A second copy of the weights on the device.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::case::Case;
use super::script::{Edit, Reason, range};
use super::tree::{self, bound_names, callee, dotted, value_of};
use super::{Applicability, Draft, Saves};

/// Loads or copies weights into host memory.
pub(super) fn duplicate(case: &Case<'_>) -> Result<Draft, Reason> {
    let statement = case.statement()?;
    let calls = tree::calls([statement]);
    let copies = |call: &&ExprCall| {
        dotted(&call.func).is_some_and(|path| path == "copy.deepcopy" || path == "deepcopy")
    };
    if let Some(call) = calls.iter().copied().find(copies) {
        return copied(case, call);
    }
    let Some(Expr::Call(call)) = value_of(statement) else {
        return Err("the line does not load or copy weights in a known way".to_owned());
    };
    loaded(case, call)
}

/// `torch.load` and `load_file`, onto the CPU.
fn loaded(case: &Case<'_>, call: &ExprCall) -> Result<Draft, Reason> {
    let keyword = match (callee(call), case.torch()) {
        (Some("load"), Ok(torch)) if dotted(&call.func) == Some(format!("{torch}.load")) => "map_location",
        (Some("load_file"), _) => "device",
        _ => return Err("the line does not load or copy weights in a known way".to_owned()),
    };
    let statement = case.statement()?;
    let names = bound_names(statement).filter(|names| names.len() == 1);
    let name = names.ok_or("what is loaded has no plain name")?[0];
    if tree::is_anothers(case.place.scope(), name) {
        return Err(format!("`{name}` is a name of the code around its function, which may read it"));
    }
    if call.arguments.keywords.iter().any(|one| one.arg.is_none()) {
        return Err("what stands behind `**` may say where it is loaded to".to_owned());
    }
    if let Some(other) = other_use(case, name) {
        return Err(format!("line {other} uses what is loaded otherwise than to load it into a model"));
    }
    let edit = match call.arguments.find_keyword(keyword) {
        Some(given) => {
            let quote = if case.script.words(&given.value).starts_with('\'') { '\'' } else { '"' };
            Edit::new(range(&given.value), format!("{quote}cpu{quote}"))
        }
        None if call.arguments.args.len() == 1 => {
            let end = call.arguments.end().to_usize() - 1;
            let text = case.script.text();
            let before = text.get(..end).unwrap_or_default().trim_end();
            if before.ends_with(',') || !text.get(before.len()..end).unwrap_or_default().is_empty() {
                return Err("the call has an unusual form".to_owned());
            }
            Edit::new(end..end, format!(", {keyword}=\"cpu\""))
        }
        None => return Err("where it is loaded to is not said by name".to_owned()),
    };
    Ok(Draft {
        title: format!("load `{name}` into host memory"),
        applicability: Applicability::Safe,
        saves: Saves::All,
        why: "it is only copied into a model from there, and entries that are no weights are the same".into(),
        edits: vec![edit],
    })
}

/// The line of a use of a loaded state that is neither `load_state_dict(...)` nor an entry under a name.
fn other_use(case: &Case<'_>, name: &str) -> Option<u32> {
    let scope = case.place.scope();
    let mut uses = Uses { name, good: Vec::new(), all: Vec::new() };
    for statement in scope {
        ruff_python_ast::visitor::Visitor::visit_stmt(&mut uses, statement);
    }
    let other = uses.all.iter().find(|one| !uses.good.contains(one));
    other.map(|one| case.script.file.place(*one).0)
}

struct Uses<'n> {
    name: &'n str,
    good: Vec<usize>,
    all: Vec<usize>,
}

impl Uses<'_> {
    fn is_it(&self, expression: &Expr) -> Option<usize> {
        match expression {
            Expr::Name(of) if of.id == self.name => Some(of.range.start().to_usize()),
            // One entry of it, to be loaded.
            Expr::Subscript(of) => self.is_it(&of.value),
            _ => None,
        }
    }
}

impl<'a> ruff_python_ast::visitor::Visitor<'a> for Uses<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(of) if of.ctx.is_load() && of.id == self.name => {
                self.all.push(of.range.start().to_usize());
            }
            // With `assign=True` the model has what was loaded, wherever that lies.
            Expr::Call(call)
                if callee(call) == Some("load_state_dict")
                    && call.arguments.find_keyword("assign").is_none()
                    && call.arguments.args.len() < 3 =>
            {
                let given = call.arguments.args.first().and_then(|one| self.is_it(one));
                self.good.extend(given);
            }
            // A number beside the weights, under a name that says so.
            Expr::Subscript(of) if matches!(&*of.slice, Expr::StringLiteral(text) if is_number(text.value.to_str())) =>
            {
                self.good.extend(self.is_it(&of.value));
            }
            _ => {}
        }
        ruff_python_ast::visitor::walk_expr(self, expression);
    }
}

/// Whether an entry of a checkpoint of this name is a plain number.
fn is_number(key: &str) -> bool {
    ["epoch", "step", "global_step", "iteration", "iter", "iter_num", "best_acc1", "best_val_loss", "lr"]
        .contains(&key)
}

/// A copy that is kept, in host memory.
fn copied(case: &Case<'_>, call: &ExprCall) -> Result<Draft, Reason> {
    let [what] = &*call.arguments.args else { return Err("the copy has an unusual form".to_owned()) };
    let statement = case.statement()?;
    let edit = match what {
        Expr::Call(state) if callee(state) == Some("state_dict") => {
            let words = case.script.words(what);
            if words.contains('\n') {
                return Err("the copy has several lines".to_owned());
            }
            let text = format!("{{key: value.to(\"cpu\", copy=True) for key, value in {words}.items()}}");
            Edit::new(range(call), text)
        }
        Expr::Name(_) | Expr::Attribute(_) => {
            if is_called(case, statement)? {
                return Err("the copy is a model that computes, too".to_owned());
            }
            let end = range(call).end;
            Edit::new(end..end, ".cpu()")
        }
        _ => return Err("the copy has an unusual form".to_owned()),
    };
    Ok(Draft {
        title: "keep the copy in host memory".to_owned(),
        applicability: Applicability::Unsafe,
        saves: Saves::All,
        why: "the copy lies on the CPU then: load it into a model on the device before it computes".into(),
        edits: vec![edit],
    })
}

/// Whether what a statement assigns is called anywhere, or handed to anything but `load_state_dict` and `torch.save`.
fn is_called(case: &Case<'_>, statement: &ruff_python_ast::Stmt) -> Result<bool, Reason> {
    let ruff_python_ast::Stmt::Assign(of) = statement else {
        return Err("the copy is not assigned".to_owned());
    };
    let [target] = &of.targets[..] else { return Err("the copy has several names".to_owned()) };
    let path = dotted(target).ok_or("the copy has no plain name")?;
    let last = path.rsplit('.').next().unwrap_or_default().to_owned();
    let ends =
        |expression: &Expr| dotted(expression).is_some_and(|one| one.rsplit('.').next() == Some(&last));
    Ok(tree::calls(case.script.body).into_iter().any(|call| {
        let handed =
            !matches!(callee(call), Some("load_state_dict" | "save")) && call.arguments.args.iter().any(ends);
        let used =
            tree::method(call).is_some_and(|(on, name)| ends(on) && !["state_dict", "cpu"].contains(&name));
        ends(&call.func) || handed || used
    }))
}
