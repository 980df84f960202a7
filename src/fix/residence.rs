//! Where values would lie if those that are kept lay in host memory.
//!
//! In: what keeps values, as if each of them was copied to the host. Out: a computation that would then have operands in both memories,
//! which PyTorch refuses. Always: only what the file shows to be on the device counts as that: what the tensors are made of, what is made
//! there by name, and what comes of these.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::case::Case;
use super::flow::Variable;
use super::keeper::{Keeper, functions};
use super::tree::{self, Names, callee, given, method};

/// What has no place: numbers, texts, shapes.
const NOWHERE: [&str; 17] = [
    "bool", "device", "dim", "dtype", "float", "format", "int", "item", "len", "ndim", "numel", "print",
    "range", "shape", "size", "str", "tolist",
];
/// Calls that put their operands beside each other and compute nothing.
const GATHERING: [&str; 24] = [
    "add",
    "append",
    "appendleft",
    "dict",
    "dump",
    "enumerate",
    "extend",
    "get",
    "index",
    "insert",
    "isinstance",
    "items",
    "list",
    "log",
    "pop",
    "print",
    "push",
    "put",
    "save",
    "set",
    "setdefault",
    "tuple",
    "update",
    "zip",
];

/// The memories in which the parts of a value lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    host: bool,
    device: bool,
}

impl Place {
    const HOST: Place = Place { host: true, device: false };
    const DEVICE: Place = Place { host: false, device: true };

    fn and(self, other: Place) -> Place {
        Place { host: self.host || other.host, device: self.device || other.device }
    }
}

/// A computation, in words, that would find some of its operands on the host and others on the device.
pub(super) fn torn_apart(case: &Case<'_>, keepers: &[Keeper<'_>]) -> Option<String> {
    let mut residence = Residence {
        case,
        functions: functions(case),
        moved: keepers.iter().map(|keeper| keeper.value.range()).collect(),
        host: keepers.iter().filter_map(|keeper| keeper.variable(case).ok()).collect(),
        device: BTreeSet::new(),
        function: None,
        judges: false,
        torn: None,
    };
    residence.seed(keepers);
    loop {
        let before = residence.host.len() + residence.device.len();
        residence.visit_body(case.script.body);
        if residence.host.len() + residence.device.len() == before {
            break;
        }
    }
    residence.judges = true;
    residence.visit_body(case.script.body);
    residence.torn
}

struct Residence<'c, 'a> {
    case: &'c Case<'a>,
    functions: Vec<&'a StmtFunctionDef>,
    /// Values that are about to be copied to the host.
    moved: Vec<TextRange>,
    host: BTreeSet<Variable>,
    device: BTreeSet<Variable>,
    function: Option<&'a StmtFunctionDef>,
    /// Whether all is known, and computations are looked at.
    judges: bool,
    torn: Option<String>,
}

impl<'a> Residence<'_, 'a> {
    /// What the tensors of the finding are made of lies where they do.
    fn seed(&mut self, keepers: &[Keeper<'a>]) {
        let own = self.case.place.innermost().and_then(|step| tree::value_of(step.statement()));
        let own = own.map(|value| (Case::function(&self.case.place), value));
        let kept = keepers.iter().map(|keeper| (Case::function(&keeper.place), keeper.value));
        for (function, value) in own.into_iter().chain(kept).collect::<Vec<_>>() {
            self.function = function;
            let names = Names::in_expression(value).read;
            let keys: Vec<Variable> = names.into_iter().filter_map(|name| self.key(name)).collect();
            self.device.extend(keys.into_iter().filter(|key| !self.host.contains(key)));
        }
        self.function = None;
    }

    /// What a name of the function around stands for; nothing for modules and what Python has.
    fn key(&self, name: &str) -> Option<Variable> {
        self.case.flow.known(self.function, name)
    }

    fn of(&self, key: Option<&Variable>) -> Place {
        let Some(key) = key else { return Place::default() };
        Place { host: self.host.contains(key), device: self.device.contains(key) }
    }

    fn all<'e>(&self, expressions: impl IntoIterator<Item = &'e Expr>) -> Place {
        expressions.into_iter().fold(Place::default(), |place, one| place.and(self.place(one)))
    }

    /// Where the parts of a value lie.
    fn place(&self, expression: &Expr) -> Place {
        if self.moved.iter().any(|one| one.contains_range(expression.range())) {
            return Place::HOST;
        }
        match expression {
            Expr::Name(of) => self.of(self.key(&of.id).as_ref()),
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
            Expr::ListComp(of) => self.place(&of.elt),
            Expr::SetComp(of) => self.place(&of.elt),
            Expr::Generator(of) => self.place(&of.elt),
            Expr::DictComp(of) => self.place(&of.value),
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

    fn put(&mut self, key: Option<Variable>, place: Place) {
        let Some(key) = key else { return };
        if place.host {
            self.host.insert(key.clone());
        }
        if place.device {
            self.device.insert(key);
        }
    }

    /// A value gets to a target: part by part where both are written out.
    fn bind(&mut self, target: &'a Expr, value: &'a Expr) {
        let targets = match target {
            Expr::Tuple(of) => &of.elts[..],
            Expr::List(of) => &of.elts,
            _ => return self.bind_to(target, self.place(value)),
        };
        match value {
            Expr::Tuple(of) if of.elts.len() == targets.len() => {
                targets.iter().zip(&of.elts).for_each(|(target, value)| self.bind(target, value));
            }
            Expr::Call(call) if callee(call) == Some("zip") && call.arguments.args.len() == targets.len() => {
                targets.iter().zip(&call.arguments.args).for_each(|(target, value)| self.bind(target, value));
            }
            Expr::Call(call) if callee(call) == Some("enumerate") && targets.len() == 2 => {
                call.arguments.args.iter().take(1).for_each(|value| self.bind(&targets[1], value));
            }
            _ => {
                let place = self.place(value);
                targets.iter().for_each(|target| self.bind_to(target, place));
            }
        }
    }

    fn bind_to(&mut self, target: &Expr, place: Place) {
        match target {
            Expr::Name(of) => self.put(self.key(&of.id), place),
            Expr::Attribute(of) => self.put(Some(Variable::Attribute(of.attr.to_string())), place),
            Expr::Subscript(of) => self.bind_to(&of.value, place),
            Expr::Starred(of) => self.bind_to(&of.value, place),
            Expr::Tuple(of) => of.elts.iter().for_each(|one| self.bind_to(one, place)),
            _ => {}
        }
    }

    /// What the data beside what is on the device comes from is moved there with it: `for x, y in loader`.
    fn drawn_together(&mut self, target: &Expr) {
        let Expr::Tuple(of) = target else { return };
        if self.all(&of.elts).device {
            of.elts.iter().for_each(|one| {
                if !self.place(one).host {
                    self.bind_to(one, Place::DEVICE);
                }
            });
        }
    }

    fn note_call(&mut self, call: &'a ExprCall) {
        let name = callee(call).unwrap_or_default();
        if let Some((on, _)) = method(call)
            && ["append", "appendleft", "add", "insert", "extend", "update", "put", "push"].contains(&name)
        {
            self.bind_to(on, self.all(&call.arguments.args));
        }
        let own: Vec<&'a StmtFunctionDef> =
            self.functions.iter().copied().filter(|of| of.name == *name).collect();
        for function in &own {
            for (parameter, value) in given(function, call) {
                let place = self.place(value);
                self.put(self.case.flow.known(Some(*function), parameter), place);
            }
        }
        let wraps = GATHERING.contains(&name) || name.starts_with(char::is_uppercase);
        if self.judges && own.is_empty() && !wraps {
            let named = call.arguments.keywords.iter().map(|one| &one.value);
            let on = method(call).map(|(on, _)| on);
            let operands = on.into_iter().chain(&call.arguments.args).chain(named);
            self.judge(call, operands.flat_map(parts));
        }
    }

    /// Whether the operands of a computation lie apart.
    fn judge<'e>(&mut self, whole: &impl Ranged, operands: impl IntoIterator<Item = &'e Expr>) {
        if !self.judges {
            return;
        }
        let places: Vec<Place> = operands.into_iter().map(|one| self.place(one)).collect();
        if places.contains(&Place::HOST) && places.contains(&Place::DEVICE) {
            self.torn.get_or_insert_with(|| self.case.script.words(whole).to_owned());
        }
    }
}

/// The parts of a list that is written out; else the one expression.
fn parts(operand: &Expr) -> Vec<&Expr> {
    match operand {
        Expr::Tuple(of) => of.elts.iter().collect(),
        Expr::List(of) => of.elts.iter().collect(),
        other => vec![other],
    }
}

impl<'a> Visitor<'a> for Residence<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(of) => {
                let outer = self.function.replace(of);
                visitor::walk_stmt(self, statement);
                self.function = outer;
                return;
            }
            Stmt::Assign(of) => of.targets.iter().for_each(|target| self.bind(target, &of.value)),
            Stmt::AnnAssign(of) => of.value.iter().for_each(|value| self.bind(&of.target, value)),
            Stmt::AugAssign(of) => {
                self.judge(statement, [&*of.target, &*of.value]);
                self.bind(&of.target, &of.value);
            }
            Stmt::For(of) => {
                self.bind(&of.target, &of.iter);
                self.drawn_together(&of.target);
            }
            Stmt::Return(of) => {
                let place = of.value.as_deref().map_or_else(Place::default, |value| self.place(value));
                let key = self.function.map(|of| Variable::Returned(of.name.to_string()));
                self.put(key, place);
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::BinOp(of) => self.judge(expression, [&*of.left, &*of.right]),
            Expr::Compare(of) => self.judge(expression, std::iter::once(&*of.left).chain(&of.comparators)),
            Expr::Subscript(of) => self.judge(expression, [&*of.value, &*of.slice]),
            Expr::Call(call) => self.note_call(call),
            Expr::Named(of) => self.bind(&of.target, &of.value),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, of: &'a Comprehension) {
        self.bind(&of.target, &of.iter);
        visitor::walk_comprehension(self, of);
    }
}
