//! Names that are given up: who reads them after all, and what keeps their values all the same.

use super::{edited, refused};

const RULE: &str = "overlapping-iterations";

/// A loop in a function, with what stands before its end and behind it.
fn text(head: &str, body: &str, rest: &str) -> String {
    format!("def f():\n    {head}:\n        out = model(x)  #!\n{body}{rest}")
}

fn plain(body: &str) -> String {
    text("for x in loader", body, "")
}

#[test]
fn a_name_that_the_head_of_the_loop_or_its_else_reads_stays() {
    let show = "        show(out)\n";
    for (text, why) in [
        (text("for x in loader", show, "    else:\n        print(out)\n"), "outside"),
        (text("while x in loader", show, "    else:\n        print(out)\n"), "outside"),
        (text("while out.mean() > 1", show, "").replace("    while", "    out = 1\n    while"), "the head of its loop"),
        (text("for x in (out[i] for i in range(3))", show, ""), "the head of its loop"),
        (text("for x in loader", show, "    del out\n"), "outside"),
        (text("for x in loader", show, "    out += 1\n"), "outside"),
        (
            "for e in range(3):\n    print(out)\n    for b in range(2):\n        for x in loader:\n            out = model(x)  #!\n            show(out)\n".to_owned(),
            "outside",
        ),
        (
            "def f():\n    try:\n        for x in loader:\n            out = model(x)  #!\n            show(out)\n    finally:\n        print(out)\n".to_owned(),
            "outside",
        ),
    ] {
        assert!(refused(RULE, &text).contains(why), "{text}{}", refused(RULE, &text));
    }
}

#[test]
fn a_name_that_python_may_look_up_by_its_text_stays() {
    let show = "        show(out)\n";
    for call in [
        "exec(code)",
        "eval('out')",
        "print(locals())",
        "log(**globals())",
        "dump(vars())",
        "g = sys._getframe().f_locals",
    ] {
        let after = text("for x in loader", show, &format!("    {call}\n"));
        assert!(refused(RULE, &after).contains("may read `out`"), "{call}");
    }
    for call in ["model.eval()", "print(vars(args))", "exec.run(code)"] {
        let after = text("for x in loader", show, &format!("    {call}\n"));
        assert!(edited(RULE, &after).unwrap().contains("        del out\n"), "{call}");
    }
}

#[test]
fn a_name_that_may_not_be_bound_is_not_given_up() {
    let block = |head: &str, more: &str| {
        format!("{more}for x in loader:\n    {head}\n        out = model(x)  #!\n    show(out)\n")
    };
    for text in [
        block("with suppress(ValueError):", ""),
        block("with pytest.raises(E):", ""),
        block("with mine():", "@contextmanager\ndef mine():\n    try:\n        yield\n    except E:\n        pass\n"),
        block("with Mine():", "class Mine:\n    def __exit__(self, *e):\n        return True\n"),
        block("with lock:\n        print(out)", ""),
        block("try:\n        pass\n    finally:", ""),
        "for x in loader:\n    out: Tensor\n    if x:\n        out = model(x)  #!\n    show(out)\n".to_owned(),
        "for x in loader:\n    out = model(x)  #!\n    try:\n        show(out)\n    except E as out:\n        pass\n".to_owned(),
        "for x in loader:\n    if (out := model(x)) is None:  #!\n        continue\n    show(out)\n".to_owned(),
    ] {
        assert!(edited(RULE, &text).is_err(), "{text}");
    }
    for text in [block("with torch.no_grad():", ""), block("with ctx, torch.autocast('cuda'):", "")] {
        assert!(edited(RULE, &text).unwrap().ends_with("    show(out)\n    del out\n"), "{text}");
    }
}

#[test]
fn what_is_kept_elsewhere_is_not_freed_by_giving_up_the_name() {
    for body in [
        "        kept.append(out)\n",
        "        kept.append((x, out.detach()))\n",
        "        kept.extend([out])\n",
        "        kept += [out]\n",
        "        self.last = out\n",
        "        self.last, y = out.view(-1), 1\n",
        "        self.last = wrap(out)\n",
        "        cache[x] = {'out': out}\n",
        "        log.update(last=out)\n",
        "        log.update({'last': out})\n",
        "        setattr(self, 'last', out)\n",
        "        yield out\n",
        "        yield x, out[0]\n",
        "        yield from out\n",
        "        pool.submit(work, out)\n",
        "        jobs.put((x, out))\n",
        "        run(partial(work, out))\n",
        "        match out:\n            case {'a': a}:\n                show(a)\n",
        "        y = out.float()\n        self.last = Row(out)\n",
        "        note(out)\n\ndef note(v):\n    w = v.view(-1)\n    keep(w)\ndef keep(w):\n    LAST[0] = w\n",
    ] {
        let why = refused(RULE, &plain(body));
        assert!(why.contains("would free nothing"), "{body}{why}");
    }
    for body in [
        "        first = lambda: out\n        show(first)\n",
        "        def later():\n            return out\n        show(later)\n",
    ] {
        assert!(edited(RULE, &plain(body)).is_err(), "{body}");
    }
    // The name of an inner loop holds a row of it to the end.
    assert!(
        refused(RULE, &plain("        for row in out:\n            show(row)\n"))
            .contains("`row` is not bound anew")
    );
}

#[test]
fn what_holds_a_value_for_the_turn_is_given_up_with_it() {
    let one = |body: &str| edited(RULE, &plain(body)).unwrap();
    for (body, gone) in [
        ("        pair = (out, x)\n        show(pair)\n", "        del out, pair\n"),
        ("        rows = [row for row in out]\n        show(rows)\n", "        del out, rows\n"),
        ("        batch = Batch(out, x)\n        show(batch)\n", "        del out, batch\n"),
        ("        a, b = out.split(2)\n        show(a, b)\n", "        del out, a, b\n"),
        // Numbers, copies and sums hold nothing of it.
        ("        kept.append(out.mean().item())\n", "        del out\n"),
        ("        kept.append(out.argmax(1))\n", "        del out\n"),
        ("        kept.append(out.cpu())\n", "        del out\n"),
        ("        total += out.sum()\n", "        del out\n"),
        ("        meter.update(out, x)\n", "        del out\n"),
        ("        self.shape = out.shape\n", "        del out\n"),
        ("        buffer[0] = out\n\nbuffer = torch.zeros(3)\n", "        del out\n"),
        ("        out[0] = out[1]\n", "        del out\n"),
    ] {
        assert!(one(body).contains(gone), "{body}{}", one(body));
    }
}
