//! Lists that were to be bounded: a class takes a capacity, and nothing reads it.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::case::Case;
use super::keeper::{Keeper, root};
use super::script::{Edit, range};
use super::tree::{self, call_of, callee, method};
use super::{Applicability, Draft, Saves};

/// What programs call the number of things that something may hold.
const CAPACITIES: [&str; 8] =
    ["capacity", "maxlen", "max_len", "maxsize", "max_size", "max_items", "buffer_size", "limit"];

/// Bounds the list that keeps by the capacity that its class takes and forgets; nothing where that is not certain.
pub(super) fn bounded(case: &Case<'_>, keepers: &[Keeper<'_>]) -> Option<Draft> {
    let keeper = keepers.first()?;
    let Expr::Attribute(list) = root(keeper.container)? else { return None };
    let name = list.attr.as_str();
    let (class, init) = class_of(case, list.start().to_usize())?;
    let capacity = forgotten(case, init)?;
    let [Expr::List(empty)] = case.assigned(name)[..] else { return None };
    let is_own = empty.elts.is_empty() && class.range().contains_range(empty.range());
    let mut used = Used { name, strange: false };
    used.visit_body(case.script.body);
    if !is_own || used.strange {
        return None;
    }
    let (deque, import) = imported(case)?;
    let mut edits = vec![Edit::new(range(empty), format!("{deque}(maxlen={capacity})"))];
    edits.extend(import);
    Some(Draft {
        title: format!(
            "bound `{}` by `{capacity}`, which nothing reads: `deque(maxlen={capacity})`",
            case.script.words(list)
        ),
        applicability: Applicability::Unsafe,
        saves: Saves::Part,
        why: "the oldest entry goes when it is full: the program then works with fewer of them, and the larger it is, the less is saved".into(),
        edits,
    })
}

/// The class around a byte, and its constructor.
fn class_of<'a>(case: &Case<'a>, at: usize) -> Option<(&'a StmtClassDef, &'a StmtFunctionDef)> {
    let place = tree::Nesting::of(case.script.body, at);
    let class = place.steps.iter().rev().find_map(|step| match step.statement() {
        Stmt::ClassDef(of) => Some(of),
        _ => None,
    })?;
    let init = class.body.iter().find_map(|statement| match statement {
        Stmt::FunctionDef(of) if of.name.as_str() == "__init__" => Some(of),
        _ => None,
    })?;
    Some((class, init))
}

/// The capacity that a constructor takes and at most stores: nothing in the file reads it.
fn forgotten<'a>(case: &Case<'_>, init: &'a StmtFunctionDef) -> Option<&'a str> {
    let parameters = init.parameters.iter_non_variadic_params().map(|one| one.name().as_str());
    let mut capacities = parameters.filter(|name| CAPACITIES.contains(name));
    let name = capacities.next().filter(|_| capacities.next().is_none())?;
    let mut stored_as: Vec<&str> = Vec::new();
    for statement in &init.body {
        if let Stmt::Assign(of) = statement
            && let ([Expr::Attribute(target)], Expr::Name(value)) = (&of.targets[..], &*of.value)
            && value.id == name
        {
            stored_as.push(&target.attr);
        }
    }
    let is_stored_alone = tree::reads(&init.body, name) == stored_as.len();
    let is_read = stored_as.iter().any(|attribute| {
        let mut read = AttributeReads { attribute, found: false };
        read.visit_body(case.script.body);
        read.found
    });
    (is_stored_alone && !is_read).then_some(name)
}

/// Whether an attribute's value is asked for anywhere.
struct AttributeReads<'n> {
    attribute: &'n str,
    found: bool,
}

impl<'a> Visitor<'a> for AttributeReads<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        self.found |=
            matches!(expression, Expr::Attribute(of) if of.ctx.is_load() && of.attr == *self.attribute);
        visitor::walk_expr(self, expression);
    }
}

/// Functions that a deque does as well for as a list.
const ASKING: [&str; 3] = ["len", "choice", "sample"];

/// Whether a list is used for what a deque cannot do, or leaves the code that is seen.
struct Used<'n> {
    name: &'n str,
    strange: bool,
}

impl Used<'_> {
    fn is_it(&self, expression: &Expr) -> bool {
        matches!(expression, Expr::Attribute(of) if of.attr == *self.name)
    }
}

impl<'a> Visitor<'a> for Used<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            // Where it is made; `self.xs.append(x)`.
            Stmt::Assign(of) if of.targets.iter().all(|one| self.is_it(one)) => return,
            Stmt::For(of) if self.is_it(&of.iter) => {
                of.body.iter().chain(&of.orelse).for_each(|one| self.visit_stmt(one));
                return;
            }
            _ => {}
        }
        if let Some(call) = call_of(statement)
            && method(call).is_some_and(|(on, name)| self.is_it(on) && name == "append")
        {
            call.arguments.args.iter().for_each(|one| self.visit_expr(one));
            return;
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) if callee(call).is_some_and(|name| ASKING.contains(&name)) => {
                for one in &call.arguments.args {
                    if !self.is_it(one) {
                        self.visit_expr(one);
                    }
                }
                return;
            }
            Expr::Subscript(of) if self.is_it(&of.value) && !of.slice.is_slice_expr() && of.ctx.is_load() => {
                return self.visit_expr(&of.slice);
            }
            _ => {}
        }
        self.strange |= self.is_it(expression);
        visitor::walk_expr(self, expression);
    }
}

/// How the file calls a deque, and the import where there is none.
fn imported(case: &Case<'_>) -> Option<(&'static str, Option<Edit>)> {
    let body = case.script.body;
    let imports = |names: &[Alias], wanted: &str| {
        names.iter().any(|one| one.name.as_str() == wanted && one.asname.is_none())
    };
    let known = body.iter().find_map(|statement| match statement {
        Stmt::Import(of) if imports(&of.names, "collections") => Some("collections.deque"),
        Stmt::ImportFrom(of) if of.module.as_ref().is_some_and(|from| from.as_str() == "collections") => {
            imports(&of.names, "deque").then_some("deque")
        }
        _ => None,
    });
    if let Some(known) = known {
        return Some((known, None));
    }
    let is_import = |statement: &&Stmt| match statement {
        Stmt::Import(_) => true,
        Stmt::ImportFrom(of) => of.module.as_ref().is_none_or(|from| from.as_str() != "__future__"),
        _ => false,
    };
    let first = body.iter().find(is_import)?;
    let import = case.script.insert_before(first, &["from collections import deque".to_owned()]).ok()?;
    Some(("deque", Some(import)))
}
