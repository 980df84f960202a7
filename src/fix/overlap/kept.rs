//! What else keeps a value whose name is given up: then that frees nothing.
//!
//! In: a loop's body, and the names of a value. Out: what keeps it beside them: a container, an attribute, whoever a generator hands it
//! to, a task, a helper of the file.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::TextRange;

use super::bindings::TurnBindings;
use super::shared::Sharing;
use crate::fix::case::Case;
use crate::fix::keeper::{functions, root};
use crate::fix::tensor::comes_to_a_tensor;
use crate::fix::tree::{self, callee, given, method};

/// Methods whose object keeps what they are given.
const KEEPING: [&str; 13] = [
    "add",
    "append",
    "appendleft",
    "extend",
    "extendleft",
    "insert",
    "push",
    "put",
    "put_nowait",
    "register_buffer",
    "send",
    "setdefault",
    "update",
];
/// What runs beside the loop, with what it is given.
const BESIDE: [&str; 9] = [
    "Process",
    "Thread",
    "Timer",
    "apply_async",
    "create_task",
    "ensure_future",
    "partial",
    "run_in_executor",
    "submit",
];
/// How deep helpers are followed.
const MOST_DEEP: usize = 3;

/// What keeps a value of some names beside them, in words; `moved` are values that are about to be copied elsewhere.
pub(super) fn keeps(
    case: &Case<'_>,
    body: &[Stmt],
    names: &BTreeSet<String>,
    moved: &[TextRange],
) -> Option<String> {
    let mut kept = KeepingCode { case, names, moved, depth: 0, found: None };
    kept.visit_body(body);
    kept.found
}

struct KeepingCode<'k, 'c> {
    case: &'k Case<'c>,
    names: &'k BTreeSet<String>,
    moved: &'k [TextRange],
    depth: usize,
    found: Option<String>,
}

impl KeepingCode<'_, '_> {
    fn has(&self, value: &Expr, wide: bool) -> bool {
        let sharing = Sharing { wide, moved: self.moved };
        sharing.names(value).iter().any(|name| self.names.contains(*name))
    }

    fn note(&mut self, keeper: &Expr) {
        let words = self.case.script.words(keeper);
        self.found.get_or_insert_with(|| format!("`{words}` keeps it, too"));
    }

    fn drawn(&mut self) {
        self.found.get_or_insert_with(|| "whoever draws from the generator has it, too".to_owned());
    }

    /// A place that is bound to a value: an attribute of an object, a place in a container.
    fn stored(&mut self, target: &Expr, value: &Expr) {
        match target {
            Expr::Tuple(of) => of.elts.iter().for_each(|one| self.stored(one, value)),
            Expr::List(of) => of.elts.iter().for_each(|one| self.stored(one, value)),
            Expr::Starred(of) => self.stored(&of.value, value),
            Expr::Attribute(_) if self.has(value, true) => self.note(target),
            Expr::Subscript(_) if self.has(value, true) && !self.copies(target) => self.note(target),
            _ => {}
        }
    }

    /// Whether a place is one in a tensor, which copies what is put there.
    fn copies(&self, target: &Expr) -> bool {
        let Some(path) = root(target).and_then(tree::dotted) else { return false };
        let made = self.case.assigned(&path);
        self.names.contains(&path)
            || !made.is_empty()
                && made.iter().all(|one| matches!(one, Expr::Call(call) if comes_to_a_tensor(call)))
    }

    /// A statement that is a call: of a container's method, of a helper of the file.
    fn called(&mut self, call: &ExprCall) {
        let arguments =
            || call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value));
        let name = callee(call).unwrap_or_default();
        if let Some((on, _)) = method(call)
            && KEEPING.contains(&name)
        {
            // `meter.update(out)` adds it up; `log.update(last=out)` and `log.update({"last": out})` keep it.
            let plain = |one: &Expr| name == "update" && !one.is_dict_expr();
            let keeps = call.arguments.args.iter().any(|one| !plain(one) && self.has(one, false))
                || call.arguments.keywords.iter().any(|one| self.has(&one.value, false));
            if keeps {
                self.note(on);
            }
        }
        if name == "setattr" && arguments().any(|one| self.has(one, true)) {
            self.note(&call.func);
        }
        if self.depth < MOST_DEEP && self.found.is_none() {
            self.in_helpers(call, name);
        }
    }

    fn in_helpers(&mut self, call: &ExprCall, name: &str) {
        for helper in functions(self.case).into_iter().filter(|of| of.name == *name) {
            let handed: Vec<&str> = given(helper, call)
                .into_iter()
                .filter(|(_, value)| self.has(value, false))
                .map(|(to, _)| to)
                .collect();
            if handed.is_empty() {
                continue;
            }
            let sharing = Sharing { wide: false, moved: self.moved };
            let mut names = TurnBindings::of(&helper.body).aliases(&handed, sharing);
            names.extend(handed.iter().map(|name| (*name).to_owned()));
            let mut inner = KeepingCode {
                case: self.case,
                names: &names,
                moved: self.moved,
                depth: self.depth + 1,
                found: None,
            };
            inner.visit_body(&helper.body);
            self.found = inner.found.map(|found| format!("{found}, in `{name}`"));
        }
    }
}

/// Whether a value is put together on the spot: `[out]`, no name and no call.
fn is_written_out(value: &Expr) -> bool {
    !matches!(value, Expr::Name(_) | Expr::Call(_) | Expr::Subscript(_) | Expr::Attribute(_))
}

impl<'a> Visitor<'a> for KeepingCode<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            _ if tree::is_definition(statement) => return,
            Stmt::Assign(of) => of.targets.iter().for_each(|target| self.stored(target, &of.value)),
            Stmt::AnnAssign(of) => of.value.iter().for_each(|value| self.stored(&of.target, value)),
            // `rows += [out]`: a tensor would be added to.
            Stmt::AugAssign(of) if is_written_out(&of.value) && self.has(&of.value, false) => {
                self.note(&of.target);
            }
            Stmt::Match(of) if self.has(&of.subject, false) => {
                self.found.get_or_insert_with(|| "a `match` takes it apart".to_owned());
            }
            Stmt::Expr(of) => match &*of.value {
                Expr::Call(call) => self.called(call),
                Expr::Await(of) => of.value.as_call_expr().into_iter().for_each(|call| self.called(call)),
                _ => {}
            },
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) if callee(call).is_some_and(|name| BESIDE.contains(&name)) => {
                let mut arguments =
                    call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value));
                // A coroutine holds what it is given.
                let given = |one: &Expr| {
                    self.has(one, false)
                        || one
                            .as_call_expr()
                            .is_some_and(|call| call.arguments.args.iter().any(|one| self.has(one, false)))
                };
                if arguments.any(given) {
                    self.note(&call.func);
                }
            }
            Expr::Yield(of) if of.value.as_deref().is_some_and(|value| self.has(value, true)) => self.drawn(),
            Expr::YieldFrom(of) if self.has(&of.value, true) => self.drawn(),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
