//! What other files get: no edit that cuts its graph is safe there.

use super::super::Applicability;
use super::uncertain::{evaluating, fix};
use super::{new_lines, refused};

const RULE: &str = "activations-without-backward";

fn judged(text: &str) -> (Applicability, String) {
    let fix = fix(RULE, text);
    (fix.applicability, fix.why)
}

#[test]
fn a_result_that_another_file_gets_is_not_cut_off_safely() {
    for (body, rest, why) in [
        ("    return out\n", "from helpers import use\nuse(evaluate(model))\n", "`use` gets it"),
        (
            "    return out\n",
            "import helpers\nr = evaluate(model)\nhelpers.use(r)\n",
            "`helpers.use` gets it",
        ),
        ("    use(out)\n", "from helpers import *\n", "`use` gets it"),
        ("    self.sink(out)\n", "", "`self.sink` gets it"),
        ("    fns['a'](out)\n", "", "gets it"),
        ("    callback(out)\n", "def g(callback):\n    pass\nevaluate(model)\n", "`callback` gets it"),
        ("    return out\n", "", "`evaluate` returns it, and nothing in this file calls that"),
        ("    return {'out': out}\n", "", "`evaluate` returns it"),
        ("    return head(out)\n", "", "`head` gets it"),
        ("    return F.relu(out)\n", "", "`evaluate` returns it"),
        ("    global R\n    R = out\n", "evaluate(model)\n", "it is in the global `R`"),
        ("    box.last = out\n", "evaluate(model)\n", "it is in the attribute `last`"),
        ("    box.rows.append(out)\n", "evaluate(model)\n", "it is in the attribute `rows`"),
        ("    rows.append(out)\n", "", "`evaluate` puts it into `rows`"),
        ("    yhat = other(model)\n    return yhat\n", "", "`evaluate` returns it"),
    ] {
        let (applicability, said) = judged(&evaluating(body, rest));
        assert_eq!(applicability, Applicability::Unsafe, "{body}{rest}");
        assert!(said.contains(why), "{body}{rest}: {said}");
    }
    let alone = "import torch\nfrom helpers import use\nfor x in xs:\n    out = model(x)  #!\n    use(out)\n";
    assert_eq!(judged(alone).0, Applicability::Unsafe);
}

#[test]
fn a_result_of_which_the_file_shows_all_is_cut_off_safely() {
    for (body, rest) in [
        ("    return out\n", "print(evaluate(model))\n"),
        ("    return out\n", "acc = evaluate(model)\nlogger.info(acc)\nwandb.log({'acc': acc})\n"),
        ("    return out.item()\n", ""),
        ("    total = 0\n    total += out.sum().item()\n    return total / 3\n", ""),
        ("    return out.argmax(1)\n", ""),
        (
            "    loss = criterion(out, 1)\n    losses.update(loss.item(), 3)\n    return losses.avg\n",
            "from utils import AverageMeter\nlosses = AverageMeter()\n",
        ),
        ("    acc = accuracy(out, 1)\n    print(acc)\n", "from utils import accuracy\n"),
        ("    box.last = out\n", "evaluate(model)\nprint(box.last)\n"),
        ("    rows.append(out)\n", "all = []\nevaluate(model, all)\nprint(all)\n"),
        ("    torch.save(out, p)\n    np.savez(p, out.mean())\n", "import numpy as np\n"),
    ] {
        let text = evaluating(body, rest);
        assert_eq!(judged(&text), (Applicability::Safe, super::super::autograd::SAFE.to_owned()), "{text}");
    }
}

#[test]
fn nothing_that_is_asked_for_its_graph_loses_it() {
    for (body, rest) in [
        ("    assert out.requires_grad\n    return out\n", ""),
        ("    return out\n", "assert evaluate(model).requires_grad\n"),
        ("    return out\n", "r = evaluate(model)\nprint(r.grad_fn)\n"),
        ("    out.retain_grad()\n", ""),
        ("    out.register_hook(print)\n", ""),
        ("    check(out)\n", "def check(x):\n    assert x.requires_grad\n"),
    ] {
        let text = evaluating(body, rest);
        assert!(
            refused(RULE, &text).contains("is asked of what would have no graph"),
            "{text}{}",
            refused(RULE, &text)
        );
    }
    // The block around the one line goes past what asks behind it, and not past what asks within.
    let asking = evaluating("    if torch.is_grad_enabled():\n        print(out)\n", "");
    assert_eq!(new_lines(RULE, &asking), ["    with torch.no_grad():", "        out = model(1)  #!"]);
    let within = asking.replace("out = model(1)", "out = run(1)")
        + "def run(x):\n    assert torch.is_grad_enabled()\n    return x\n";
    assert!(refused(RULE, &within).contains("is asked of"));
    let freezing =
        evaluating("    print(out)\n", "for p in model.parameters():\n    p.requires_grad = False\n");
    assert_eq!(judged(&freezing).0, Applicability::Safe);
    let kept =
        "kept = []\nfor x in xs:\n    loss = model(x)  #!\n    loss.backward()\n    kept.append(loss)\n";
    assert!(refused("retained-graph", &format!("{kept}assert kept[0].requires_grad\n")).contains("is asked"));
    let given = fix("retained-graph", &format!("from helpers import use\n{kept}use(kept)\n"));
    assert_eq!(given.applicability, Applicability::Unsafe);
    assert_eq!(
        fix("retained-graph", &format!("{kept}print(sum(kept))\n")).applicability,
        Applicability::Safe
    );
}
