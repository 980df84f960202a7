//! Which optimizers are cleared, and which are not.

use std::rc::Rc;

use super::super::{Fix, mend_at};
use super::{edited_in_place, finding, new_lines, refused};
use crate::source::{SourceFile, SourceMap, Spot};

const RULE: &str = "missing-zero-grad";

/// A pass that three optimizers take, of which a loop clears some.
fn text(clears: &str) -> String {
    format!(
        "class Trainer:\n    def __init__(self):\n        self.opt_f = torch.optim.Adam(self.f.parameters())\n        self.opt_c = torch.optim.Adam(self.c.parameters())\n        self.opt_d = torch.optim.SGD(self.d.parameters())\n        self.both = [self.opt_f, self.opt_c]\n        self.all = make(self)\n    def update(self, x):\n{clears}        (self.c(x) + self.d(x)).backward()  #!\n        self.opt_f.step()\n        self.opt_c.step()\n        self.opt_d.step()\n"
    )
}

fn fix(text: &str) -> Fix {
    let (finding, line) = finding(RULE, text);
    let file = Rc::new(SourceFile::new("train.py".to_owned(), text.to_owned()));
    mend_at(&finding, None, &Spot { file, line, sure: true }, &SourceMap::default()).unwrap()
}

#[test]
fn what_a_loop_over_optimizers_clears_is_not_cleared_again() {
    for clears in [
        "        for opt in (self.opt_f, self.opt_c):\n            opt.zero_grad()\n",
        "        for opt in self.both:\n            opt.zero_grad()\n",
        "        [o.zero_grad() for o in self.both]\n",
        "        self.opt_f.zero_grad()\n        self.opt_c.zero_grad()\n",
    ] {
        assert_eq!(
            new_lines(RULE, &text(clears)),
            ["        self.opt_d.zero_grad(set_to_none=True)"],
            "{clears}"
        );
        let fix = fix(&text(clears));
        assert_eq!(fix.title, "call `self.opt_d.zero_grad()` after the step");
        assert!(fix.why.starts_with("every step of `self.opt_d` then uses"), "{}", fix.why);
    }
    // Which of them a loop clears is not always written there.
    let unknown = "        for opt in self.all:\n            opt.zero_grad()\n";
    assert!(refused(RULE, &text(unknown)).contains("which optimizers `opt.zero_grad()` clears"));
    let all = "        for opt in (self.opt_f, self.opt_c, self.opt_d):\n            opt.zero_grad()\n";
    assert!(refused(RULE, &text(all)).contains("is there already"));
}

#[test]
fn the_title_names_every_optimizer_that_is_cleared() {
    let three = fix(&text(""));
    assert_eq!(three.edits.len(), 3);
    assert_eq!(
        three.title,
        "call `self.opt_f.zero_grad()` and `self.opt_c.zero_grad()` and `self.opt_d.zero_grad()` after their steps"
    );
    let two = fix(
        "a = SGD(d)\nopt = SGD(g)\nfor x in xs:\n    d(x).backward()  #!\n    opt.step()\n    g(x).backward()\n    opt_g.step()\n    opt_g.zero_grad()\n",
    );
    assert_eq!(two.title, "call `opt.zero_grad()` after the step, and once more at the end of the turn");
}

#[test]
fn what_a_helper_is_given_to_clear_is_cleared() {
    let text = |helper: &str, call: &str| {
        format!(
            "opt = torch.optim.SGD(m.parameters())\nother = torch.optim.SGD(n.parameters())\n{helper}for x in xs:\n    m(x).backward()  #!\n    opt.step()\n    {call}\n"
        )
    };
    let clear = "def clear(o):\n    o.zero_grad()\n";
    assert!(refused(RULE, &text(clear, "clear(opt)")).contains("is there already"));
    assert!(refused(RULE, &text(clear, "clear(*all)")).contains("which optimizers `o.zero_grad()` clears"));
    assert_eq!(new_lines(RULE, &text(clear, "clear(other)")), ["    opt.zero_grad(set_to_none=True)"]);
    let set = "def clear(ps):\n    for p in ps:\n        p.grad = None\n";
    assert!(refused(RULE, &text(set, "clear(m.parameters())")).contains("sets `.grad` itself"));
}

#[test]
fn a_clearing_moves_to_the_caller_only_where_self_is_the_same_object() {
    let text = |class: &str, call: &str, step: &str| {
        format!(
            "class Rate:\n    def __init__(self, optimizer):\n        self.optimizer = optimizer\n    def prepare(self):\n        \
             self.optimizer.zero_grad()  #!\n        self.count = 1\n{class}{call}  #^\n        loss.backward()\n        {step}.step()\n"
        )
    };
    let own = "    def f(self, loss):\n        ";
    let moved = edited_in_place("late-zero-grad", &text(own, "self.prepare()", "self.optimizer")).unwrap();
    assert!(moved.ends_with("self.optimizer.step()\n        self.optimizer.zero_grad()\n"), "{moved}");
    // A method of another class, of another object of this one, and a function.
    for (class, call) in [
        ("class Trainer:\n    def f(self, loss):\n        ", "self.prepare()"),
        (own, "other.prepare()"),
        ("def f(rate, loss):\n        ", "rate.prepare()"),
    ] {
        let reason = edited_in_place("late-zero-grad", &text(class, call, "self.optimizer")).unwrap_err();
        assert!(reason.contains("follows in the same function"), "{class}{call}: {reason}");
    }
}
