//! Whether a value is a tensor, and whose graph it has, as far as the source shows.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Stmt};

use super::calls::{TENSORS, is_cut, makes_tensors};
use super::case::Case;
use super::script::Reason;
use super::tree::{Nesting, dotted, method};

/// What of a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// What a backward pass would need.
    Graph,
    /// Its memory on the device.
    Memory,
}

impl Kept {
    /// Whether the result of a call has nothing of it.
    fn is_cut(self, call: &ExprCall) -> bool {
        let name = method(call).map(|(_, name)| name);
        match self {
            Kept::Graph => is_cut(call),
            Kept::Memory => name == Some("cpu") || name != Some("detach") && is_cut(call),
        }
    }
}

/// Whether an expression takes what is kept from one of some names.
pub(super) fn mentions(expression: &Expr, names: &BTreeSet<String>, kept: Kept) -> bool {
    let mut uncut = Uncut { names, kept, found: false };
    uncut.visit_expr(expression);
    uncut.found
}

struct Uncut<'n> {
    names: &'n BTreeSet<String>,
    kept: Kept,
    found: bool,
}

impl<'a> Visitor<'a> for Uncut<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Compare(_) => {}
            Expr::Call(call) if self.kept.is_cut(call) => {}
            Expr::Name(of) => self.found |= self.names.contains(of.id.as_str()),
            _ => visitor::walk_expr(self, expression),
        }
    }
}

/// Makes sure that every part of a kept value is a tensor: a call of PyTorch, or a name of which nothing is asked that a tensor does not have, and
/// which either something is asked that tensors alone have, or whose line makes one tensor each time. (A model may well return a list.)
pub(super) fn is_tensor(
    case: &Case<'_>,
    place: &Nesting<'_>,
    value: &Expr,
    derived: &BTreeSet<String>,
    kept: Kept,
) -> Result<(), Reason> {
    let all = |parts: &[Expr]| parts.iter().try_for_each(|one| is_tensor(case, place, one, derived, kept));
    let is_one = match value {
        _ if !mentions(value, derived, kept) => true,
        Expr::Tuple(of) => return all(&of.elts),
        Expr::List(of) => return all(&of.elts),
        Expr::Dict(of) => {
            return of.items.iter().try_for_each(|one| is_tensor(case, place, &one.value, derived, kept));
        }
        Expr::Name(of) => {
            let mut asked = Asked { name: &of.id, strange: false, shown: false };
            place.scope().iter().for_each(|one| asked.visit_stmt(one));
            BoundValues::to_tensors(place.scope(), &of.id)
                || !asked.strange && (asked.shown || makes_one_each(case))
        }
        Expr::Attribute(of) => ["loss", "logits"].contains(&of.attr.as_str()),
        Expr::Call(call) => comes_to_a_tensor(call),
        Expr::BinOp(_) | Expr::UnaryOp(_) => !chooses(value),
        _ => false,
    };
    let words = case.script.words(value);
    if is_one { Ok(()) } else { Err(format!("`{words}` may be something else than a tensor")) }
}

/// Makes sure that what is added to a sum is a tensor, where a part of it is one: neither a number of Python in some turns, nor one that a
/// function makes of it.
pub(super) fn is_summand(case: &Case<'_>, value: &Expr) -> Result<(), Reason> {
    let is_one = match value {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => true,
        Expr::BinOp(_) | Expr::UnaryOp(_) => !chooses(value),
        Expr::Call(call) => comes_to_a_tensor(call) || takes_tensors(call),
        _ => false,
    };
    let words = case.script.words(value);
    if is_one { Ok(()) } else { Err(format!("`{words}` may be something else than a tensor")) }
}

/// Whether an expression has a choice in it: `loss if good else 0`.
fn chooses(value: &Expr) -> bool {
    let mut choices = Choices(false);
    choices.visit_expr(value);
    choices.0
}

struct Choices(bool);

impl<'a> Visitor<'a> for Choices {
    fn visit_expr(&mut self, expression: &'a Expr) {
        self.0 |= matches!(expression, Expr::If(_) | Expr::BoolOp(_));
        visitor::walk_expr(self, expression);
    }
}

/// Whether a call is of PyTorch, or asks something that is a tensor for another.
pub(super) fn comes_to_a_tensor(call: &ExprCall) -> bool {
    let path = dotted(&call.func).unwrap_or_default();
    makes_tensors(&path) || method(call).is_some_and(|(_, name)| TENSORS.contains(&name))
}

/// What a name is bound to: `onehot = F.one_hot(index).float()`.
struct BoundValues<'n> {
    name: &'n str,
    to_tensors: bool,
    to_others: bool,
}

impl BoundValues<'_> {
    /// Whether a name is bound to what calls come to that make tensors, and to nothing else.
    fn to_tensors<'s>(scope: impl IntoIterator<Item = &'s Stmt>, name: &str) -> bool {
        let mut bound = BoundValues { name, to_tensors: false, to_others: false };
        scope.into_iter().for_each(|one| bound.visit_stmt(one));
        bound.to_tensors && !bound.to_others
    }
}

impl<'a> Visitor<'a> for BoundValues<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let made = match statement {
            Stmt::Assign(of) => match (&of.targets[..], &*of.value) {
                ([Expr::Name(to)], Expr::Call(call)) if to.id == self.name => comes_to_a_tensor(call),
                _ => false,
            },
            _ => false,
        };
        if made {
            self.to_tensors = true;
        } else {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(of) = expression {
            self.to_others |= of.id == self.name && of.ctx == ExprContext::Store;
        }
        visitor::walk_expr(self, expression);
    }
}

/// Whether the recording shows that the line makes one tensor each time.
fn makes_one_each(case: &Case<'_>) -> bool {
    case.counted("tensors-alive").zip(case.counted("rises")).is_some_and(|(alive, rises)| alive <= rises)
}

/// Whether something works with tensors: a function of PyTorch, or a loss.
pub(super) fn takes_tensors(call: &ExprCall) -> bool {
    let path = dotted(&call.func).unwrap_or_default();
    let last = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    makes_tensors(&path) || last.contains("loss") || last.contains("criterion")
}

/// Looks for what no tensor has, and for what tensors alone have.
struct Asked<'n> {
    name: &'n str,
    strange: bool,
    shown: bool,
}

impl<'a> Visitor<'a> for Asked<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        let is_it = |one: &Expr| matches!(one, Expr::Name(of) if of.id == self.name);
        match expression {
            Expr::Attribute(of) if is_it(&of.value) => {
                let has = TENSORS.contains(&of.attr.as_str());
                self.strange |= !has;
                self.shown |= has;
            }
            Expr::BinOp(of) => self.shown |= is_it(&of.left) || is_it(&of.right),
            Expr::UnaryOp(of) => self.shown |= is_it(&of.operand),
            Expr::Call(call) => self.shown |= takes_tensors(call) && call.arguments.args.iter().any(is_it),
            Expr::Subscript(of) if is_it(&of.value) => {
                self.strange |= matches!(&*of.slice, Expr::StringLiteral(_));
            }
            Expr::Starred(of) => self.strange |= is_it(&of.value),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
