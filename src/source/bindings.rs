//! What a file's names stand for, as far as imports tell: which calls are PyTorch's functions and which are Python's own.
//!
//! Always: a name that is bound in any other way, anywhere in the file, stands for anything.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, ExceptHandler, Expr, Parameter, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// Functions of Python that call no code of the user's but what classes define for them (`__len__`, `__int__`).
const BUILTINS: [&str; 12] = [
    "abs",
    "bool",
    "float",
    "id",
    "int",
    "isinstance",
    "issubclass",
    "len",
    "print",
    "range",
    "round",
    "type",
];

/// How far a call reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It may run anything.
    Any,
    /// A function of PyTorch under its own name: it may run hooks of the user's, but no module directly.
    Torch,
    /// A function of `torch.cuda`, which runs no hooks.
    TorchCuda,
    /// One of Python's own.
    Builtin,
}

/// The names of a file.
#[derive(Debug, Default)]
pub(super) struct Bindings<'a> {
    /// What stands for PyTorch or something of it, with the path of that.
    torch: FxHashMap<&'a str, String>,
    /// What is bound otherwise.
    other: FxHashSet<&'a str>,
    /// Whether an import binds names that only the imported module knows.
    starred: bool,
}

impl<'a> Bindings<'a> {
    /// Reads the names of a file.
    pub(super) fn of(body: &'a [Stmt]) -> Bindings<'a> {
        let mut bindings = Bindings::default();
        bindings.visit_body(body);
        bindings
    }

    /// How far the call of an expression reaches.
    pub(super) fn reach(&self, called: &Expr) -> Reach {
        let mut path = String::new();
        let mut expression = called;
        while let Expr::Attribute(of) = expression {
            path = format!(".{}{path}", of.attr);
            expression = &of.value;
        }
        let Expr::Name(root) = expression else { return Reach::Any };
        let root = root.id.as_str();
        // `torch.nn.Module.__call__(model, x)` is the call of a module after all.
        if self.starred || self.other.contains(root) || path.contains(".__") {
            return Reach::Any;
        }
        match self.torch.get(root) {
            Some(of) if format!("{of}{path}").starts_with("torch.cuda.") => Reach::TorchCuda,
            Some(_) => Reach::Torch,
            None if path.is_empty() && BUILTINS.contains(&root) => Reach::Builtin,
            None => Reach::Any,
        }
    }

    fn import(&mut self, from: Option<&str>, alias: &'a Alias) {
        let name = alias.name.as_str();
        self.starred |= name == "*";
        let path = from.map_or_else(|| name.to_owned(), |module| format!("{module}.{name}"));
        // `import torch.nn` binds `torch`.
        let (bound, path) = match (&alias.asname, from) {
            (Some(own), _) => (own.as_str(), path),
            (None, Some(_)) => (name, path),
            (None, None) => {
                let first = name.split('.').next().unwrap_or(name);
                (first, first.to_owned())
            }
        };
        if path.split('.').next() == Some("torch") {
            self.torch.insert(bound, path);
        } else {
            self.other.insert(bound);
        }
    }
}

impl<'a> Visitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(of) => of.names.iter().for_each(|alias| self.import(None, alias)),
            Stmt::ImportFrom(of) => {
                let module = of.module.as_ref().map_or("", |module| module.as_str());
                let module = if of.level == 0 { module } else { "." };
                of.names.iter().for_each(|alias| self.import(Some(module), alias));
            }
            Stmt::FunctionDef(of) => {
                self.other.insert(&of.name);
            }
            Stmt::ClassDef(of) => {
                self.other.insert(&of.name);
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(of) = expression
            && !of.ctx.is_load()
        {
            self.other.insert(&of.id);
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.other.insert(&parameter.name);
        visitor::walk_parameter(self, parameter);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(of) = handler;
        self.other.extend(of.name.as_ref().map(ruff_python_ast::Identifier::as_str));
        visitor::walk_except_handler(self, handler);
    }
}
