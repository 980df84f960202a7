//! Where the parts of an expression's value lie.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::{Place, Residence};
use crate::fix::flow::Variable;
use crate::fix::tree::{callee, method};

/// What has no place: numbers, texts, shapes.
const NOWHERE: [&str; 17] = [
    "bool", "device", "dim", "dtype", "float", "format", "int", "item", "len", "ndim", "numel", "print",
    "range", "shape", "size", "str", "tolist",
];
impl Residence<'_, '_> {
    /// Where the parts of a value lie.
    pub(super) fn place(&self, expression: &Expr) -> Place {
        if self.moved.iter().any(|one| one.contains_range(expression.range())) {
            return Place::HOST;
        }
        match expression {
            Expr::Name(of) => self.named(&of.id),
            Expr::Attribute(of) if NOWHERE.contains(&of.attr.as_str()) => Place::default(),
            Expr::Attribute(of) => {
                self.of(Some(&Variable::Attribute(of.attr.to_string()))).and(self.place(&of.value))
            }
            Expr::Subscript(of) => self.place(&of.value),
            Expr::Starred(of) => self.place(&of.value),
            Expr::Await(of) => self.place(&of.value),
            Expr::Named(of) => self.place(&of.value),
            Expr::UnaryOp(of) => self.place(&of.operand),
            Expr::BinOp(of) => self.all([&*of.left, &*of.right]),
            Expr::BoolOp(of) => self.all(&of.values),
            Expr::Compare(of) => self.all(std::iter::once(&*of.left).chain(&of.comparators)),
            Expr::If(of) => self.all([&*of.body, &*of.orelse]),
            Expr::Tuple(of) => self.all(&of.elts),
            Expr::List(of) => self.all(&of.elts),
            Expr::Set(of) => self.all(&of.elts),
            Expr::Dict(of) => self.all(of.items.iter().map(|one| &one.value)),
            Expr::ListComp(of) => self.put_together(&of.elt, &of.generators),
            Expr::SetComp(of) => self.put_together(&of.elt, &of.generators),
            Expr::Generator(of) => self.put_together(&of.elt, &of.generators),
            Expr::DictComp(of) => self.put_together(&of.value, &of.generators),
            Expr::Call(of) => self.called(of),
            _ => Place::default(),
        }
    }

    fn called(&self, call: &ExprCall) -> Place {
        let name = callee(call).unwrap_or_default();
        if NOWHERE.contains(&name) && !(name == "float" && method(call).is_some()) {
            return Place::default();
        }
        let on = method(call).map_or_else(Place::default, |(on, _)| self.place(on));
        match name {
            "cpu" | "numpy" => return Place::HOST,
            "cuda" => return Place::DEVICE,
            "to" => return call.arguments.args.first().and_then(|to| self.moved_to(to)).unwrap_or(on),
            _ => {}
        }
        if let Some(device) = call.arguments.find_keyword("device") {
            return self.moved_to(&device.value).unwrap_or(Place::DEVICE);
        }
        if self.functions.iter().any(|of| of.name == *name) {
            return self.of(Some(&Variable::Returned(name.to_owned())));
        }
        let named = call.arguments.keywords.iter().map(|one| &one.value);
        on.and(self.all(call.arguments.args.iter().chain(named)))
    }

    /// The memory that a device names; nothing where it may be a number's kind: `x.to(torch.float16)`.
    fn moved_to(&self, device: &Expr) -> Option<Place> {
        match device {
            Expr::StringLiteral(text) if text.value.to_str().starts_with("cpu") => Some(Place::HOST),
            Expr::StringLiteral(_) => Some(Place::DEVICE),
            // Where another tensor lies.
            Expr::Attribute(of) if of.attr == *"device" => {
                Some(if self.place(&of.value).host { Place::HOST } else { Place::DEVICE })
            }
            other => {
                let words = self.case.script.words(other).to_lowercase();
                let says = |word: &str| words.contains(word);
                if says("cpu") {
                    Some(Place::HOST)
                } else {
                    (says("dev") || says("cuda") || says("gpu") || says("rank")).then_some(Place::DEVICE)
                }
            }
        }
    }
}
