//! Whose memory a value has: that of the names that it views, and of those that stand in it.
//!
//! Always: too many names rather than too few; what a function of PyTorch computes is new.

use std::collections::BTreeSet;

use ruff_python_ast::{Comprehension, Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

use crate::fix::calls::{is_cut, makes_tensors};
use crate::fix::tensor::takes_tensors;
use crate::fix::tree::{Names, callee, dotted, method};

/// Methods that give another view of the same memory, or part of what holds it.
const VIEWS: [&str; 26] = [
    "chunk",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "get",
    "items",
    "movedim",
    "narrow",
    "permute",
    "pop",
    "ravel",
    "reshape",
    "select",
    "split",
    "squeeze",
    "swapaxes",
    "t",
    "transpose",
    "unbind",
    "unflatten",
    "unsqueeze",
    "values",
    "view",
    "view_as",
];
/// Methods that give back the same tensor where it is so already.
const MAYBE_SAME: [&str; 11] = [
    "bfloat16",
    "contiguous",
    "cuda",
    "double",
    "float",
    "half",
    "numpy",
    "to",
    "type",
    "type_as",
    "requires_grad_",
];
/// Functions whose result holds what they are given, beside classes.
const WRAPPING: [&str; 13] = [
    "copy",
    "dict",
    "enumerate",
    "frozenset",
    "iter",
    "list",
    "next",
    "partial",
    "reversed",
    "set",
    "sorted",
    "tuple",
    "zip",
];
/// What a tensor has that is none.
const NO_TENSORS: [&str; 6] = ["device", "dtype", "ndim", "requires_grad", "shape", "grad_fn"];

/// How much of an expression counts as the memory of its names.
#[derive(Clone, Copy, Default)]
pub(super) struct Sharing<'m> {
    /// Whether methods that may give back the same tensor, and functions of which nothing is known, count, too.
    pub(super) wide: bool,
    /// Values that are about to be copied elsewhere.
    pub(super) moved: &'m [TextRange],
}

impl Sharing<'_> {
    /// The names whose memory a value has.
    pub(super) fn names(self, expression: &Expr) -> BTreeSet<&str> {
        if self.moved.iter().any(|one| one.contains_range(expression.range())) {
            return BTreeSet::new();
        }
        match expression {
            Expr::Name(of) => BTreeSet::from([of.id.as_str()]),
            Expr::Attribute(of) if NO_TENSORS.contains(&of.attr.as_str()) => BTreeSet::new(),
            Expr::Attribute(of) => self.names(&of.value),
            Expr::Subscript(of) => self.names(&of.value),
            Expr::Starred(of) => self.names(&of.value),
            Expr::Await(of) => self.names(&of.value),
            Expr::Named(of) => self.names(&of.value),
            Expr::Tuple(of) => self.all(&of.elts),
            Expr::List(of) => self.all(&of.elts),
            Expr::Set(of) => self.all(&of.elts),
            Expr::Dict(of) => of.items.iter().flat_map(|one| self.names(&one.value)).collect(),
            Expr::BoolOp(of) => self.all(&of.values),
            Expr::If(of) => [&*of.body, &*of.orelse].into_iter().flat_map(|one| self.names(one)).collect(),
            Expr::Lambda(_) => Names::in_expression(expression).read,
            Expr::ListComp(of) => self.drawn(&of.elt, &of.generators),
            Expr::SetComp(of) => self.drawn(&of.elt, &of.generators),
            Expr::Generator(of) => Names::in_expression(expression)
                .read
                .into_iter()
                .chain(self.drawn(&of.elt, &of.generators))
                .collect(),
            Expr::DictComp(of) => self.drawn(&of.value, &of.generators),
            Expr::Call(of) => self.called(of),
            _ => BTreeSet::new(),
        }
    }

    fn all<'e>(self, expressions: impl IntoIterator<Item = &'e Expr>) -> BTreeSet<&'e str> {
        expressions.into_iter().flat_map(|one| self.names(one)).collect()
    }

    /// What a comprehension puts together: of what it draws from, as far as each part is of that.
    fn drawn<'e>(self, each: &'e Expr, from: &'e [Comprehension]) -> BTreeSet<&'e str> {
        let mut names = self.names(each);
        for one in from.iter().rev() {
            let targets = Names::in_expression(&one.target).bound;
            if !names.is_disjoint(&targets) {
                names.retain(|name| !targets.contains(name));
                names.extend(self.names(&one.iter));
            }
        }
        names
    }

    fn called(self, call: &ExprCall) -> BTreeSet<&str> {
        let name = callee(call).unwrap_or_default();
        let given = call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value));
        let is_view = VIEWS.contains(&name) || self.wide && MAYBE_SAME.contains(&name);
        let is_torchs = dotted(&call.func).is_some_and(|path| makes_tensors(&path));
        if is_torchs {
            return if is_view { self.all(call.arguments.args.first()) } else { BTreeSet::new() };
        }
        if let Some((on, _)) = method(call)
            && (is_view || name.ends_with('_') && !name.starts_with('_'))
            && (name == "detach" || name == "requires_grad_" || !is_cut(call))
        {
            return self.names(on);
        }
        if WRAPPING.contains(&name) || name.starts_with(char::is_uppercase) {
            return self.all(given);
        }
        let is_unknown = self.wide && method(call).is_none() && !is_cut(call) && !takes_tensors(call);
        if is_unknown { self.all(given) } else { BTreeSet::new() }
    }
}

/// The name that an expression is a view of, if it does nothing else: what it is made of has the same memory, too.
pub(super) fn viewed(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(of) => Some(&of.id),
        Expr::Attribute(of) => viewed(&of.value),
        Expr::Subscript(of) => viewed(&of.value),
        Expr::Call(call) => {
            let (on, name) = method(call)?;
            (VIEWS.contains(&name) && (name == "detach" || !is_cut(call))).then(|| viewed(on))?
        }
        Expr::ListComp(of) => {
            let [only] = &of.generators[..] else { return None };
            let (item, over) = (viewed(&of.elt)?, viewed(&only.iter)?);
            matches!(&only.target, Expr::Name(target) if target.id == item).then_some(over)
        }
        _ => None,
    }
}
