//! What the file does not show, and what runs later than it stands: no edit is safe there.

use std::rc::Rc;

use super::super::{Applicability, Fix, mend_at};
use super::{edited, finding, new_lines, refused};
use crate::source::{SourceFile, SourceMap, Spot};
use crate::unit::Bytes;

pub(super) fn fix(rule: &'static str, text: &str) -> Fix {
    let (finding, line) = finding(rule, text);
    let file = Rc::new(SourceFile::new("train.py".to_owned(), text.to_owned()));
    let spot = Spot { file, line, sure: true };
    mend_at(&finding, Some(Bytes(100)), &spot, &SourceMap::default())
        .unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn applicability(rule: &'static str, text: &str) -> Applicability {
    fix(rule, text).applicability
}

/// A program that evaluates, and then something else.
pub(super) fn evaluating(body: &str, rest: &str) -> String {
    format!(
        "import torch\ndef evaluate(model, rows=None):\n    model.eval()\n    out = model(1)  #!\n{body}{rest}"
    )
}

#[test]
fn a_function_that_is_handed_on_may_be_differentiated_by_whoever_gets_it() {
    let rule = "activations-without-backward";
    let text = |rest: &str| evaluating("    return out\n", rest);
    for rest in [
        "fn = evaluate\nfn(model).backward()\n",
        "fns = {'a': evaluate}\nfns['a'](model).backward()\n",
        "functools.partial(evaluate, model)().backward()\n",
        "opt.step(lambda: evaluate(model))\n",
        "opt.step(evaluate(model))\n",
        "opt.minimize(evaluate(model))\n",
        "engine.run(evaluate)\n",
        "def run(fn=evaluate):\n    fn(model).backward()\n",
        "def again():\n    yield from evaluate(model)\nfor x in again():\n    x.backward()\n",
        "getattr(tasks, 'evaluate')(model).backward()\n",
    ] {
        assert!(refused(rule, &text(rest)).contains("may be differentiated"), "{rest}");
    }
    for rest in [
        "print(evaluate(model))\n",
        "scheduler.step(evaluate(model))\n",
        "env.step(evaluate(model))\n",
        "if args.evaluate:\n    evaluate(model)\n",
        "rows = sorted(rows, key=lambda row: row.score)\n",
    ] {
        assert_eq!(new_lines(rule, &text(rest)), ["@torch.no_grad()"], "{rest}");
    }
    let method = "class Trainer:\n    def validate(self):\n        self.model.eval()\n        return self.model(1)  #!\n    def fit(self):\n        rest\n";
    let method = |rest: &str| format!("import torch\n{}", method.replace("rest", rest));
    refused(rule, &method("self.run(self.validate)"));
    assert_eq!(new_lines(rule, &method("print(self.validate())")), ["    @torch.no_grad()"]);
    assert_eq!(new_lines(rule, &method("print(self.args.validate)")), ["    @torch.no_grad()"]);
    // A property is called where nobody sees it.
    let property = evaluating(
        "    return out\n",
        "class A:\n    @property\n    def total(self):\n        return evaluate(1)\nA().total.backward()\n",
    );
    assert!(refused(rule, &property).contains("may be differentiated"));
}

#[test]
fn a_function_that_trains_is_seen_beside_a_method_of_its_name() {
    let helper = "def train(m):\n    m(1).backward()\n";
    let text = evaluating("    train(model)\n    model.train()\n    return out\n", helper);
    let lines = new_lines("activations-without-backward", &text);
    assert_eq!(lines, ["    with torch.no_grad():", "        out = model(1)  #!"]);
}

#[test]
fn what_an_evaluation_leaves_behind_keeps_its_graph_where_that_is_needed() {
    let rule = "activations-without-backward";
    let elsewhere = |use_: &str| format!("def train(self):\n    {use_}\n");
    for (body, rest) in [
        ("    global R\n    R = out\n", elsewhere("R.backward()")),
        ("    global R\n    R = out\n", "def train():\n    global R\n    R.backward()\n".to_owned()),
        ("    box.last = out\n", elsewhere("self.last.sum().backward()")),
        ("    rows.append(out)\n", "all = []\nevaluate(model, all)\nsum(all).backward()\n".to_owned()),
        ("    rows['a'] = out\n", "all = {}\nevaluate(model, rows=all)\nall['a'].backward()\n".to_owned()),
        (
            "    note(out)\n",
            "def note(x):\n    LOG.append(x)\nLOG = []\ndef train():\n    sum(LOG).backward()\n".to_owned(),
        ),
    ] {
        let text = evaluating(body, &rest);
        assert!(refused(rule, &text).contains("may be differentiated"), "{text}");
    }
    for (body, rest) in [
        ("    global R\n    R = out\n", "print(R)\n"),
        ("    rows.append(out)\n", "all = []\nevaluate(model, all)\nprint(sum(all))\nloss.backward()\n"),
        // Only moved, and given to both.
        (
            "    move(rows)\n",
            "def move(rows):\n    rows['x'] = rows['x'].to(0)\nmove(batch)\nmodel(batch).backward()\n",
        ),
        // A mean of tensors is no mean of meters.
        (
            "    meter.update(out)\n",
            "class Meter:\n    def update(self, v):\n        self.sum += v\nmodel(1).sum().backward()\n",
        ),
    ] {
        let text = evaluating(body, rest);
        assert_eq!(new_lines(rule, &text), ["@torch.no_grad()"], "{text}");
    }
    // In a function within a function the outer one's names are no others.
    let nested = "import torch\ndef main():\n    best = None\n    def look():\n        nonlocal best\n        best = model(1)  #!\n    look()\n    best.backward()\n";
    assert!(refused(rule, nested).contains("differentiated"));
}

#[test]
fn a_name_that_is_read_later_is_not_given_up() {
    let rule = "overlapping-iterations";
    let text = |body: &str| format!("def f():\n    for x in loader:\n        out = model(x)  #!\n{body}");
    for body in [
        "        later.append(lambda: out.sum())\n",
        "        show(out)\n        rows = (out[i] for i in range(3))\n",
        "        rows = (i for i in range(3) if out[i])\n",
    ] {
        assert!(refused(rule, &text(body)).contains("reads `out` when it runs"), "{body}");
    }
    for body in [
        "        show(sum(out[i] for i in range(3)))\n",
        "        rows = (row for row in out)\n",
        "        best = max(range(3), key=lambda i: out[i])\n",
        "        show(*(out[i] for i in range(3)))\n",
        "        a, b = (out[i] for i in range(2))\n",
    ] {
        assert!(edited(rule, &text(body)).unwrap().contains("        del out"), "{body}");
    }
    let global = text("        show(out)\n").replace("    for", "    global out\n    for");
    assert!(refused(rule, &global).contains("the code around its function"));
    let loaded = "import torch\ndef f():\n    global ckpt\n    ckpt = torch.load(p, map_location='cuda')  #!\n    model.load_state_dict(ckpt)\n";
    assert!(refused("duplicate-weights", loaded).contains("the code around its function"));
}

#[test]
fn moving_zero_grad_is_not_safe_before_somebody_who_gets_the_model() {
    let text = |head: &str, behind: &str, after: &str| {
        format!(
            "opt = torch.optim.SGD(net.parameters())\nlog(net)\nfor x in loader:\n{head}    loss = net(x)\n    opt.zero_grad()  #!\n    loss.backward()\n    clip(net)\n    opt.step()\n{behind}{after}"
        )
    };
    let of = |text: &str| applicability("late-zero-grad", text);
    for text in [
        text("", "    watch(net, loss)\n", ""),
        text("    watch(net)\n", "", ""),
        text("", "", "report(net.parameters())\n"),
        text("", "    watch(opt)\n", ""),
        text("", "    log({'model': net})\n", ""),
        text("", "    names = [p for p in net.parameters()]\n    hist(names)\n", ""),
        text("", "    show(net)\n", "").replace("for x", "def show(m):\n    hist(m)\nfor x"),
    ] {
        assert_eq!(of(&text), Applicability::Unsafe, "{text}");
    }
    for text in [
        text("", "    print(len(net), loss.item())\n", ""),
        text("", "    torch.save(net.state_dict(), p)\n    log(net.config, opt.param_groups[0]['lr'])\n", ""),
        text("", "    ema.update(net)\n    net.train()\n", ""),
        text("", "    acc = accuracy(net(x), x)\n    log(acc)\n", ""),
        text("", "    show(net)\n", "").replace("for x", "def show(m):\n    print(m)\nfor x"),
    ] {
        assert_eq!(of(&text), Applicability::Safe, "{text}");
    }
}

#[test]
fn a_byte_order_mark_stays_in_front() {
    let text = "\u{feff}for x in loader:\n    out = model(x)  #!\n    show(out)\n";
    let expected = "\u{feff}for x in loader:\n    out = model(x)  #!\n    show(out)\n    del out\n";
    assert_eq!(edited("overlapping-iterations", text).unwrap(), expected);
    // What comes in at the very beginning comes in behind it.
    let text = "\u{feff}import random\nclass Replay:\n    def __init__(self, capacity):\n        self.rows = []\n    def push(self, obs):\n        self.rows.append(obs)\nfor t in range(9):\n    obs = env()  #!\n    replay.push(obs)\n";
    let after = edited("growing-residency", text).unwrap();
    assert!(after.starts_with("\u{feff}from collections import deque\nimport random\n"), "{after:?}");
    let text = "\u{feff}out = model(1)  #!\nimport torch\n";
    let after = edited("activations-without-backward", text).unwrap();
    assert_eq!(after, "\u{feff}with torch.no_grad():\n    out = model(1)  #!\nimport torch\n");
    let text = "\u{feff}def f(model):\n    model.eval()\n    out = model(1)  #!\nimport torch\n";
    let after = edited("activations-without-backward", text).unwrap();
    assert!(after.starts_with("\u{feff}@torch.no_grad()\ndef f"), "{after:?}");
}

#[test]
fn what_is_cached_counts_where_that_is_measured() {
    let text = |rest: &str| format!("for i in xs:\n    work(i)\n    torch.cuda.empty_cache()  #!\n{rest}");
    assert_eq!(applicability("allocator-thrash", &text("print(1)\n")), Applicability::Safe);
    let measured = text("print(torch.cuda.memory_reserved())\n");
    assert_eq!(applicability("allocator-thrash", &measured), Applicability::Unsafe);
}
