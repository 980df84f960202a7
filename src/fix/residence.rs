//! Where values would lie if those that are kept lay in host memory.
//!
//! In: what keeps values, as if each of them was copied to the host. Out: a computation that would then have operands in both memories,
//! which PyTorch refuses. Always: only what the file shows to be on the device counts as that: what the tensors are made of, what is made
//! there by name, and what comes of these.

mod place;

use std::cell::RefCell;
use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::case::Case;
use super::flow::Variable;
use super::keeper::{Keeper, functions};
use super::tree::{self, Names, callee, given, method};

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
        drawn: RefCell::default(),
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
    /// Names of the comprehensions around, which are no one else's.
    drawn: RefCell<Vec<(String, Place)>>,
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

    /// What a name of the function around stands for; nothing for modules, what Python has, and an object that holds much.
    fn key(&self, name: &str) -> Option<Variable> {
        self.case.flow.known(self.function, name).filter(|_| name != "self" && name != "cls")
    }

    fn named(&self, name: &str) -> Place {
        let drawn = self.drawn.borrow().iter().rev().find(|(own, _)| own == name).map(|(_, place)| *place);
        drawn.unwrap_or_else(|| self.of(self.key(name).as_ref()))
    }

    fn of(&self, key: Option<&Variable>) -> Place {
        let Some(key) = key else { return Place::default() };
        Place { host: self.host.contains(key), device: self.device.contains(key) }
    }

    fn all<'e>(&self, expressions: impl IntoIterator<Item = &'e Expr>) -> Place {
        expressions.into_iter().fold(Place::default(), |place, one| place.and(self.place(one)))
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

    /// Where the parts of a target lie when a value gets to it: part by part where both are written out.
    fn spread<'e>(&self, target: &'e Expr, value: &Expr) -> Vec<(&'e Expr, Place)> {
        let targets = match target {
            Expr::Tuple(of) => &of.elts[..],
            Expr::List(of) => &of.elts,
            _ => return vec![(target, self.place(value))],
        };
        let parts = match value {
            Expr::Tuple(of) => &of.elts[..],
            Expr::Call(call) if callee(call) == Some("zip") => &call.arguments.args,
            Expr::Call(call) if callee(call) == Some("enumerate") && targets.len() == 2 => {
                let counted = call.arguments.args.first();
                return counted.map(|value| self.spread(&targets[1], value)).unwrap_or_default();
            }
            _ => &[],
        };
        if parts.len() == targets.len() {
            return targets
                .iter()
                .zip(parts)
                .flat_map(|(target, value)| self.spread(target, value))
                .collect();
        }
        let place = self.place(value);
        targets.iter().map(|target| (target, place)).collect()
    }

    fn bind(&mut self, target: &'a Expr, value: &'a Expr) {
        for (target, place) in self.spread(target, value) {
            self.bind_to(target, place);
        }
    }

    /// Takes up the names of a comprehension; what is longer than before goes with it.
    fn draw(&self, generators: &[Comprehension]) -> usize {
        let before = self.drawn.borrow().len();
        for one in generators {
            for (target, place) in self.spread(&one.target, &one.iter) {
                let names =
                    Names::in_expression(target).bound.into_iter().map(|name| (name.to_owned(), place));
                self.drawn.borrow_mut().extend(names);
            }
        }
        before
    }

    fn put_together(&self, each: &Expr, generators: &[Comprehension]) -> Place {
        let before = self.draw(generators);
        let place = self.place(each);
        self.drawn.borrow_mut().truncate(before);
        place
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
                // A tensor stays where it is; a number becomes one.
                if self.place(&of.target) == Place::default() {
                    self.bind(&of.target, &of.value);
                }
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
        let before = self.draw(generators(expression));
        visitor::walk_expr(self, expression);
        self.drawn.borrow_mut().truncate(before);
    }
}

/// What a comprehension draws from.
fn generators(expression: &Expr) -> &[Comprehension] {
    match expression {
        Expr::ListComp(of) => &of.generators,
        Expr::SetComp(of) => &of.generators,
        Expr::Generator(of) => &of.generators,
        Expr::DictComp(of) => &of.generators,
        _ => &[],
    }
}
