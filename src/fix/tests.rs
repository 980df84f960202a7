//! Programs that look alike: one is edited, the other is not.

mod clearing;
mod dropping;
mod keeping;
mod layout;
mod leaving;
mod uncertain;

use std::rc::Rc;

use super::{Applicability, Patch, mend_at};
use crate::finding::{Finding, Group, Impact, Location, Measure, Quantity, Related, Severity, StackFrame};
use crate::source::{SourceFile, SourceMap, Spot};
use crate::unit::Bytes;

/// A finding at the line that holds a mark: `#!`; lines with `#^` call its function. The line makes one tensor each time; with `#*` it makes eight.
fn finding(rule: &'static str, text: &str) -> (Finding, u32) {
    let lines = |mark: &'static str| {
        text.lines().zip(1_u32..).filter(move |(line, _)| line.contains(mark)).map(|(_, number)| number)
    };
    let line = lines("#!").next().unwrap();
    let at = |line| Location { file: "train.py".to_owned(), line, function: "f".to_owned() };
    let frame = |line| StackFrame { location: at(line), user: true };
    let finding = Finding {
        location: Some(at(line)),
        stack: lines("#!").chain(lines("#^")).map(frame).collect(),
        related: lines("#@")
            .map(|line| Related { location: at(line), message: String::new(), stood: None })
            .collect(),
        impact: Impact { peak: Some(Bytes(50)), ..Impact::default() },
        evidence: vec![
            counted("rises", 3),
            counted("tensors-alive", if text.contains("#*") { 24 } else { 3 }),
        ],
        ..Finding::of(rule, Group::Leak, Severity::Error)
    };
    (finding, line)
}

fn counted(name: &'static str, number: u64) -> Measure {
    Measure { name: name.into(), value: Quantity::Count(number), text: String::new() }
}

/// The lines that come out new, or why there are none.
fn edited(rule: &'static str, text: &str) -> Result<String, String> {
    edited_among(rule, text, &SourceMap::default())
}

/// The same where the file lies among the sources, so that callers are found in it.
fn edited_in_place(rule: &'static str, text: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("train.py"), text).unwrap();
    edited_among(rule, text, &SourceMap::new([folder.path().to_owned()], Vec::new()))
}

fn edited_among(rule: &'static str, text: &str, sources: &SourceMap) -> Result<String, String> {
    let (finding, line) = finding(rule, text);
    let file = Rc::new(SourceFile::new("train.py".to_owned(), text.to_owned()));
    let spot = Spot { file, line, sure: true };
    let fix = mend_at(&finding, Some(Bytes(100)), &spot, sources)?;
    let patched = Patch::alone(fix).files(|_| Some(text.to_owned())).pop().unwrap();
    Ok(patched.after)
}

fn new_lines(rule: &'static str, text: &str) -> Vec<String> {
    let after = edited(rule, text).unwrap_or_else(|reason| format!("no edit: {reason}"));
    after.lines().filter(|line| !text.lines().any(|old| old == *line)).map(str::to_owned).collect()
}

fn refused(rule: &'static str, text: &str) -> String {
    edited(rule, text).expect_err("no edit is certain here")
}

const LOOP: &str = "opt = torch.optim.SGD(model.parameters(), lr=1)\nfor x in loader:\n    loss = model(x)\n    loss.backward()  #!\n";

#[test]
fn gradients_are_cleared_after_the_step_wherever_that_is() {
    let one = |rest: &str| new_lines("missing-zero-grad", &format!("{LOOP}{rest}"));
    assert_eq!(one("    opt.step()\n"), ["    opt.zero_grad(set_to_none=True)"]);
    assert_eq!(one("    scaler.step(opt)\n    scaler.update()\n"), ["    opt.zero_grad(set_to_none=True)"]);
    // Accumulation stays accumulation.
    let accumulating = "    if i % 4 == 0:\n        opt.step()\n";
    assert_eq!(one(accumulating), ["        opt.zero_grad(set_to_none=True)"]);
    // The last line of a file without a line break.
    assert_eq!(one("    opt.step()"), ["    opt.zero_grad(set_to_none=True)"]);
}

#[test]
fn the_loop_that_warms_up_is_cleared_with_the_one_that_trains() {
    let loops = |warm: &str| {
        format!("{}    opt.step()\n{warm}", LOOP.replace("  #!", ""))
            + &LOOP.replace("opt = torch.optim.SGD(model.parameters(), lr=1)\n", "")
            + "    opt.step()\n"
    };
    let clear = "    opt.zero_grad(set_to_none=True)";
    assert_eq!(new_lines("missing-zero-grad", &loops("")), [clear, clear]);
    // Another optimizer's loop is another's business.
    let other = loops("").replacen("    opt.step()", "    opt2.step()", 1);
    assert_eq!(new_lines("missing-zero-grad", &other), [clear]);
}

#[test]
fn gradients_that_are_cleared_or_looked_at_are_left_alone() {
    let one = |rest: &str| refused("missing-zero-grad", &format!("{LOOP}{rest}"));
    assert!(one("    opt.step()\n    opt.zero_grad()\n").contains("is there already"));
    assert!(one("    opt.step()\n    model.zero_grad()\n").contains("is there already"));
    assert!(one("    opt.step()\n    for p in ps: p.grad = None\n").contains(".grad"));
    assert!(one("    scheduler.step()\n").contains("no plain"));
    assert!(one("    opt.step(closure)\n").contains("no plain"));
    assert!(one("    if good: opt.step()\n").contains("other code"));
}

#[test]
fn a_frozen_backbone_is_cleared_with_its_head() {
    let program = |made: &str, clears: &str| {
        format!(
            "opt = SGD({made}, lr=1)\nfor x in loader:\n    {clears}.zero_grad()\n    loss = model(x)\n    loss.backward()  #!\n    opt.step()\n"
        )
    };
    let text = program("model.fc.parameters()", "opt");
    assert_eq!(new_lines("missing-zero-grad", &text), ["    model.zero_grad()"]);
    // Which model it is, or whether other gradients are meant to stay, is not certain.
    for text in [
        program("model.parameters()", "opt"),
        program("[p for p in model.fc.parameters()]", "opt"),
        program("other.fc.parameters()", "opt"),
        program("model.fc.parameters()", "model.fc"),
        program("model.fc.parameters()", "opt") + "other.zero_grad()\n",
    ] {
        assert!(refused("missing-zero-grad", &text).contains("is there already"), "{text}");
    }
}

#[test]
fn each_of_two_networks_is_cleared_by_its_own_optimizer() {
    let text = "\
a = torch.optim.Adam(d.parameters())
b = torch.optim.Adam(g.parameters())
for x in loader:
    d(x).backward()  #!
    a.step()
    d(g(x)).backward()
    b.step()
    b.zero_grad()
";
    assert_eq!(
        new_lines("missing-zero-grad", text),
        ["    a.zero_grad(set_to_none=True)", "    a.zero_grad(set_to_none=True)"]
    );
}

#[test]
fn clearing_moves_behind_the_step_that_always_follows() {
    let text = |between: &str, step: &str| {
        format!(
            "for x in loader:\n    loss = model(x)\n    opt.zero_grad()  #!\n    loss.backward()\n{between}{step}"
        )
    };
    let moved = edited("late-zero-grad", &text("", "    opt.step()\n")).unwrap();
    assert!(moved.ends_with("    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"), "{moved}");
    for (between, step) in [
        ("", "    if x:\n        opt.step()\n"),
        ("    if bad(loss):\n        continue\n", "    opt.step()\n"),
        ("    other.backward()\n", "    opt.step()\n"),
        ("    print(w.grad)\n", "    opt.step()\n"),
        ("", "    train(opt)\n"),
        ("", "    opt.step()\n    norm = clip_grad_norm_(model.parameters(), 1e9)\n"),
        ("", "    opt.step()\n    log_grads(model)\n"),
    ] {
        refused("late-zero-grad", &text(between, step));
    }
}

#[test]
fn a_kept_value_loses_its_graph_unless_that_is_needed() {
    let text = |keep: &str, rest: &str| {
        format!(
            "history = []\ntotal = 0\nfor x in loader:\n    loss = model(x)  #!\n    loss.backward()\n    {keep}\n{rest}"
        )
    };
    let one = |keep: &str| new_lines("retained-graph", &text(keep, ""));
    assert_eq!(one("history.append(loss)"), ["    history.append(loss.detach())"]);
    assert_eq!(one("total += loss"), ["    total += loss.detach()"]);
    assert_eq!(one("total += loss / 2"), ["    total += (loss / 2).detach()"]);
    assert_eq!(one("log[step] = loss"), ["    log[step] = loss.detach()"]);
    assert_eq!(one("history.append((x, loss))"), ["    history.append((x, loss.detach()))"]);
    let needed = "sum(history).backward()\n";
    assert!(refused("retained-graph", &text("history.append(loss)", needed)).contains("differentiated"));
    let handed_on = "def update(values):\n    torch.stack(values).sum().backward()\nupdate(history)\n";
    assert!(refused("retained-graph", &text("history.append(loss)", handed_on)).contains("differentiated"));
    refused("retained-graph", &text("history.append(loss.item())", ""));
    refused("retained-graph", &text("show(loss)", ""));
    let shown = "torch.stack(history).mean().item()\n";
    assert_eq!(
        new_lines("retained-graph", &text("history.append(loss)", shown)),
        ["    history.append(loss.detach())"]
    );
}

#[test]
fn a_sum_that_is_only_shown_becomes_a_number() {
    let text = |rest: &str| {
        format!(
            "def f():\n    total = 0\n    for x in loader:\n        loss = model(x)  #!\n        loss.backward()\n        total += loss\n    {rest}\nf()  #^\n"
        )
    };
    assert_eq!(new_lines("retained-graph", &text("print(f'{total:.3f}')")), ["        total += loss.item()"]);
    assert_eq!(new_lines("retained-graph", &text("return total")), ["        total += loss.detach()"]);
}

#[test]
fn growing_tensors_go_to_the_host_if_they_are_tensors() {
    let text = |keep: &str| format!("kept = []\nfor x in loader:\n    out = model(x)  #!\n    {keep}\n");
    let one = |keep: &str| new_lines("growing-residency", &text(keep));
    assert_eq!(one("kept.append(out)"), ["    kept.append(out.detach().cpu())", "    del out"]);
    assert_eq!(
        one("kept.append(out)\n    if out is x: break"),
        ["    kept.append(out.detach().cpu())", "    del out"]
    );
    assert_eq!(one("kept.append(out.detach())"), ["    kept.append(out.detach().cpu())", "    del out"]);
    refused("growing-residency", &text("kept.append(out.detach().cpu())"));
    refused("growing-residency", &text("kept.append(out.past_key_values)"));
    refused("growing-residency", &text("kept.append(out); print(out['logits'])"));
    refused("growing-residency", &text("fresh = []; fresh.append(out)"));
}

#[test]
fn evaluation_runs_without_autograd() {
    let text = |head: &str, rest: &str| {
        format!(
            "import torch\n{head}def f(model):\n    model.eval()\n    for x in loader:\n        out = model(x)  #!\n{rest}"
        )
    };
    assert_eq!(
        new_lines("activations-without-backward", &text("", "    return out\n")),
        ["@torch.no_grad()"]
    );
    let decorated = edited("activations-without-backward", &text("@timed\n", "    return out\n")).unwrap();
    assert!(decorated.contains("@timed\n@torch.no_grad()\ndef f"), "{decorated}");
    assert!(edited("activations-without-backward", &text("", "        out.sum().backward()\n")).is_err());
    let renamed = text("", "").replace("import torch", "import torch as th");
    assert_eq!(new_lines("activations-without-backward", &renamed), ["@th.no_grad()"]);
    let without = text("", "").replace("import torch\n", "from torch import nn\n");
    assert!(refused("activations-without-backward", &without).contains("import torch"));
    // Whoever trains in a helper of its own would train nothing any more.
    let helper = "def train(m):\n    m(1).backward()\n";
    let trained = new_lines("activations-without-backward", &text(helper, "    train(model)\n"));
    assert_eq!(trained, ["        with torch.no_grad():", "            out = model(x)  #!"]);
    // A generator hands its values out in the middle: only the one statement.
    let generator = new_lines("activations-without-backward", &text("", "        yield out\n"));
    assert_eq!(generator, ["        with torch.no_grad():", "            out = model(x)  #!"]);
    // An async function runs with others in between.
    let coroutine = text("", "    return out\n").replace("def f", "async def f");
    assert_eq!(new_lines("activations-without-backward", &coroutine).len(), 2);
}

#[test]
fn a_statement_keeps_its_graph_where_somebody_differentiates_it() {
    let text = |use_: &str| {
        format!(
            "import torch\nfor x in loader:\n\tsoft = teacher(\n\t\tx)  #!\n\tloss = kd(student(x), {use_})\n\tloss.backward()\n"
        )
    };
    let wrapped = edited("activations-without-backward", &text("soft.detach()")).unwrap();
    assert!(wrapped.contains("\n\twith torch.no_grad():\n\t\tsoft = teacher(\n\t\t\tx)  #!\n"), "{wrapped}");
    assert!(refused("activations-without-backward", &text("soft")).contains("differentiated"));
}

#[test]
fn weights_are_loaded_into_host_memory_if_they_are_only_copied_from_there() {
    let text = |load: &str, rest: &str| {
        format!("import torch\nckpt = {load}  #!\nmodel.load_state_dict(ckpt)\n{rest}")
    };
    let one = |load: &str| new_lines("duplicate-weights", &text(load, ""));
    assert_eq!(one("torch.load(p, map_location='cuda')"), ["ckpt = torch.load(p, map_location='cpu')  #!"]);
    assert_eq!(one("torch.load(p)"), ["ckpt = torch.load(p, map_location=\"cpu\")  #!"]);
    assert_eq!(one("load_file(p, device=dev)"), ["ckpt = load_file(p, device=\"cpu\")  #!"]);
    refused("duplicate-weights", &text("torch.load(p)", "average(ckpt)\n"));
    refused("duplicate-weights", &text("torch.load(p)", "y = ckpt['mean'] * x\n"));
    refused("duplicate-weights", &text("torch.load(p, dev)", ""));
    refused("duplicate-weights", &text("build(p)", ""));
    let called = "import copy\nself.best = copy.deepcopy(model)  #!\ny = self.best(x)\n";
    assert!(refused("duplicate-weights", called).contains("computes"));
}

#[test]
fn names_are_given_up_behind_their_last_use() {
    let text = |body: &str, rest: &str| format!("for x in loader:\n    out = model(x)  #!\n{body}{rest}");
    let one = |body: &str| edited("overlapping-iterations", &text(body, "")).unwrap();
    assert!(one("    print(out)\n    other()\n").ends_with("    print(out)\n    del out\n    other()\n"));
    assert!(one("    y = out.logits\n    show(y)\n").ends_with("    show(y)\n    del out, y\n"));
    assert!(one("    probs = out.softmax(1)\n    show(probs)\n").ends_with("    del out, probs\n"));
    assert!(one("    n = out.argmax(1).item()\n    show(n)\n").ends_with("    del out\n    show(n)\n"));
    assert!(refused("overlapping-iterations", &text("", "print(out)\n")).contains("outside"));
    assert!(refused("overlapping-iterations", &text("    del out\n", "")).contains("given up"));
    let carried = "state = None\nfor x in loader:\n    show(state)\n    state = model(x)  #!\n";
    assert!(refused("overlapping-iterations", carried).contains("bound anew"));
    let before = "show(out)\nout = None\n";
    assert!(edited("overlapping-iterations", &format!("{before}{}", text("", ""))).is_ok());
    let attribute = "for x in loader:\n    self.last = model(x)  #!\n";
    refused("overlapping-iterations", attribute);
}

#[test]
fn emptying_the_cache_goes_with_what_guards_it() {
    let one = |body: &str| edited("allocator-thrash", &format!("for i in range(9):\n    work(i)\n{body}"));
    assert_eq!(one("    torch.cuda.empty_cache()  #!\n").unwrap(), "for i in range(9):\n    work(i)\n");
    assert_eq!(
        one("    if i % 2 == 0:\n        torch.cuda.empty_cache()  #!\n").unwrap(),
        "for i in range(9):\n    work(i)\n"
    );
    let effect = one("    if done():\n        torch.cuda.empty_cache()  #!\n").unwrap();
    assert!(effect.ends_with("    if done():\n        pass  #!\n"), "{effect}");
    assert!(one("    work(i); torch.cuda.empty_cache()  #!\n").is_err());
}

#[test]
fn an_optimizer_is_made_once() {
    let text = |before: &str, args: &str, rest: &str| {
        format!(
            "def main():\n{before}    for e in range(3):\n        opt = torch.optim.Adam({args})  #@\n        opt.step()  #!\n{rest}"
        )
    };
    let one =
        |before: &str, args: &str, rest: &str| edited("optimizer-state-regrowth", &text(before, args, rest));
    let moved = one("    lr = 1\n", "model.parameters(), lr=lr", "        lr *= 0.5\n").unwrap();
    let expected = "    opt = torch.optim.Adam(model.parameters(), lr=lr)\n    for e in range(3):\n        for group in opt.param_groups:\n            group[\"lr\"] = lr  #@\n";
    assert!(moved.contains(expected), "{moved}");
    let same = "    opt = torch.optim.Adam(model.parameters())\n";
    let set = one(same, "model.parameters(), lr=e", "").unwrap();
    assert!(
        set.contains("        for group in opt.param_groups:\n            group[\"lr\"] = e  #@\n"),
        "{set}"
    );
    for (before, args, rest) in [
        ("    opt = torch.optim.Adam(head.parameters())\n", "model.parameters(), lr=e", ""),
        ("", "model.parameters(), lr=e", ""),
        ("", "layers[e].parameters()", ""),
        ("    lr = 1\n", "model.parameters(), lr=lr", "        sched = StepLR(opt, 1)\n"),
    ] {
        assert!(one(before, args, rest).is_err(), "{before}{args}{rest}");
    }
    // One of another function has the same name and nothing else in common.
    let other = format!("def other():\n{same}{}", text("", "model.parameters(), lr=e", ""));
    refused("optimizer-state-regrowth", &other);
}

#[test]
fn cells_of_notebooks_are_named_and_files_that_are_not_here_asked_for() {
    let refused = |file: &str| {
        let location = Location { file: file.to_owned(), line: 3, function: "f".to_owned() };
        let finding = Finding {
            location: Some(location),
            ..Finding::of("missing-zero-grad", Group::Leak, Severity::Error)
        };
        super::mend(&finding, None, &SourceMap::default()).expect_err("there is no file")
    };
    assert!(refused("/tmp/ipykernel_12/345.py").contains("a cell of a notebook"));
    assert!(refused("<stdin>").contains("typed in"));
    assert!(refused("/job/train.py").contains("--source-root"));
}

#[test]
fn line_ends_stay_and_unsafe_edits_are_held_back() {
    let text = format!("{LOOP}    opt.step()\n").replace('\n', "\r\n");
    let after = edited("missing-zero-grad", &text).unwrap();
    assert!(after.ends_with("    opt.step()\r\n    opt.zero_grad(set_to_none=True)\r\n"), "{after:?}");
    let (finding, line) = finding("missing-zero-grad", &text);
    let spot = Spot { file: Rc::new(SourceFile::new("train.py".to_owned(), text.clone())), line, sure: true };
    let fix = mend_at(&finding, None, &spot, &SourceMap::default()).unwrap();
    assert_eq!(fix.applicability, Applicability::Unsafe);
    let proposals = || {
        let one = |finding| super::Proposal { finding, outcome: Ok(fix.clone()) };
        vec![one(0), one(1)]
    };
    let held = Patch::of(proposals(), false);
    assert_eq!((held.taken.len(), held.held_back.len()), (0, 1));
    let taken = Patch::of(proposals(), true);
    assert_eq!(taken.taken[0].1, [0, 1], "one edit mends both");
}
