//! Files laid out as people and editors lay them out: the edit keeps to that, or there is none.

use super::{edited, new_lines, refused};

#[test]
fn a_line_that_is_shared_is_left_alone() {
    for text in [
        "for x in loader: out = model(x); show(out)  #!\n",
        "for x in loader:\n    out = model(x); show(out)  #!\n",
        "for x in loader:\n    é = 'ü'; out = model(x)  #!\n    show(out); other()\n",
        "for x in loader:\n    out = model(x)  #!\n    s = \"\"\"é\n{out}\"\"\"; show(s, out)\n",
        "for x in loader:\n    a, *out = model(x)  #!\n    show(out)\n",
        "for x in loader:\n    out = y = model(x)  #!\n    show(out)\n",
        "class A:\n    for x in loader:\n        out = model(x)  #!\n        show(out)\n",
        "def f():\n    for x in loader:\n        out = model(x)  #!\n        return out\n",
    ] {
        refused("overlapping-iterations", text);
    }
    refused("missing-zero-grad", "for x in xs:\n    m(x).backward()  #!\n    with lock: opt.step()\n");
    refused("late-zero-grad", "for x in xs:\n    opt.zero_grad(); m(x).backward()  #!\n    opt.step()\n");
    refused("allocator-thrash", "for i in xs: torch.cuda.empty_cache()  #!\n");
    refused(
        "activations-without-backward",
        "import torch\ndef f(model): model.eval(); print(model(1))  #!\n",
    );
}

#[test]
fn what_comes_in_is_laid_out_as_its_surroundings() {
    let rule = "overlapping-iterations";
    for (text, end) in [
        (
            "for x in loader:\n\tout = model(x)  #!\n\ttry:\n\t\tshow(out)\n\tfinally:\n\t\tlog(out)\n",
            "\t\tlog(out)\n\tdel out\n",
        ),
        (
            "async def f():\n  async for x in loader:\n    out = await model(x)  #!\n    await show(out)\n",
            "await show(out)\n    del out\n",
        ),
        (
            "for x in loader:\n    out = \\\n        model(x)  #!\n    show(\n        out,\n    )  # é\n",
            "    )  # é\n    del out\n",
        ),
        (
            "for x in loader:\n    out: Tensor = model(x)  #!\n    show(f'{out:.2f}')",
            "show(f'{out:.2f}')\n    del out",
        ),
        ("\x0cfor x in loader:\n    out = model(x)  #!\n    show(out)\n", "    show(out)\n    del out\n"),
        (
            "for x in loader:\r\n    out = model(x)  #!\r\n    show(out)\r\n",
            "    show(out)\r\n    del out\r\n",
        ),
        (
            "for x in loader:\n    out = model(x)  #!\n    show([out for out in out])\n    continue\n",
            "\n    del out\n    continue\n",
        ),
        (
            "while True:\n    out = model(x)  #!\n    if stop(out): break\n",
            "    if stop(out): break\n    del out\n",
        ),
        (
            "for x in loader:\n    out = model(x)  #!\n    match show(out):\n        case [a]:\n            pass\n",
            "            pass\n    del out\n",
        ),
        (
            "for x in loader:\n    out = model(x)  #!\n    for i in y:\n        show(out)\n    else:\n        show(out)\n    # é\n\nprint(1)\n",
            "        show(out)\n    del out\n    # é\n\nprint(1)\n",
        ),
    ] {
        let after = edited(rule, text).unwrap_or_else(|why| panic!("{text}{why}"));
        assert!(after.ends_with(end), "{after}");
    }
}

#[test]
fn a_statement_of_several_lines_moves_in_as_a_whole() {
    let text = "import torch\r\nfor x in xs:\r\n    y: T = model(\r\n        x,\r\n\r\n    )  #!\r\n    print(y)\r\n";
    let after = edited("activations-without-backward", text).unwrap();
    let block = "    with torch.no_grad():\r\n        y: T = model(\r\n            x,\r\n\r\n        )  #!\r\n    print(y)\r\n";
    assert!(after.ends_with(block), "{after:?}");
    for text in ["y = model(x, '''a\nb''')", "y = f\"{model(x)\n}\""] {
        refused(
            "activations-without-backward",
            &format!("import torch\nfor x in xs:\n    {text}  #!\n    print(y)\n"),
        );
    }
    let head = "import torch\nif x:\n\t@timed\n\tdef f(\n\t\tmodel,\n\t):\n\t\tmodel.eval()\n\t\tprint(model(1))  #!\n";
    let after = edited("activations-without-backward", head).unwrap();
    assert!(after.contains("\t@timed\n\t@torch.no_grad()\n\tdef f(\n"), "{after}");
    let compiled = head.replace("@timed", "@torch.jit.script");
    assert!(refused("activations-without-backward", &compiled).contains("the line is no plain assignment"));
}

#[test]
fn a_sum_is_cut_only_where_it_is_one_of_tensors() {
    let text = |add: &str, show: &str| {
        format!(
            "def f():\n    total = 0\n    for x in loader:\n        loss = model(x)  #!\n        loss.backward()\n        total += {add}\n    print({show})\nf()  #^\n"
        )
    };
    let one = |add: &str, show: &str| new_lines("retained-graph", &text(add, show));
    assert_eq!(one("loss * x.size(0)", "total"), ["        total += (loss * x.size(0)).detach()"]);
    for add in ["loss if x else 0", "x and loss", "(loss if x else 0) * 2", "as_number(loss)"] {
        assert!(
            refused("retained-graph", &text(add, "total")).contains("something else than a tensor"),
            "{add}"
        );
    }
    // A number has no `item`, and no function of PyTorch takes one.
    for show in [
        "total.item()",
        "f'{total.item():.3f}'",
        "'%.2f' % total, total.cpu()",
        "torch.sqrt(total)",
        "total[0]",
    ] {
        assert_eq!(one("loss", show), ["        total += loss.detach()"], "{show}");
    }
    for show in ["total", "f'{total / 3:.3f}'", "'%.2f' % (total, )", "round(float(total) / len(x), 3)"] {
        assert_eq!(one("loss", show), ["        total += loss.item()"], "{show}");
    }
}

#[test]
fn weights_are_not_loaded_elsewhere_where_that_is_said_or_they_stay_there() {
    let text = |load: &str, use_: &str| format!("import torch\nckpt = torch.load({load})  #!\n{use_}\n");
    assert!(refused("duplicate-weights", &text("p, **options", "m.load_state_dict(ckpt)")).contains("`**`"));
    refused("duplicate-weights", &text("p", "m.load_state_dict(ckpt, assign=True)"));
    refused("duplicate-weights", &text("p", "m.load_state_dict(ckpt, True, True)"));
    assert!(edited("duplicate-weights", &text("p", "m.load_state_dict(ckpt, strict=False)")).is_ok());
}

#[test]
fn what_else_a_line_may_be_for_is_asked() {
    let cache = |text: &str| refused("allocator-thrash", text);
    assert!(cache("for i in xs:\n    try:\n        work()\n    except OutOfMemoryError:\n        torch.cuda.empty_cache()  #!\n        retry()\n").contains("an error is handled"));
    let optimizer = "for e in es:\n    freeze(m, e)\n    opt = torch.optim.Adam([p for p in m.parameters() if p.requires_grad])  #@\n    for x in xs:\n        opt.step()  #!\n";
    assert!(refused("optimizer-state-regrowth", optimizer).contains("may change from turn to turn"));
    let late = "for x in xs:\n    loss = m(x)\n    opt.zero_grad()  #!\n    loss.backward()\n    opt.step()\n    print(getattr(p, 'grad'))\n";
    assert!(refused("late-zero-grad", late).contains("`.grad`"));
}
