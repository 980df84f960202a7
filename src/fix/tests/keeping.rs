//! What keeps values, seen from the line that makes them.

use super::{edited, edited_in_place, new_lines, refused};

#[test]
fn what_a_helper_keeps_is_cut_where_it_is_handed_over() {
    let helper = |body: &str| format!("class Meter:\n    def update(self, v, n=1):\n        {body}\n");
    let text = |body: &str, call: &str| {
        format!(
            "{}for x in loader:\n    loss = model(x)  #!\n    loss.backward()\n    {call}\n",
            helper(body)
        )
    };
    let one = |body: &str, call: &str| new_lines("retained-graph", &text(body, call));
    assert_eq!(one("self.all.append(v)", "meter.update(loss)"), ["    meter.update(loss.detach())"]);
    assert_eq!(
        one("self.all.append(v)", "meter.update(n=2, v=loss)"),
        ["    meter.update(n=2, v=loss.detach())"]
    );
    // It is used for more than to be kept; it is no object that keeps; there are two of the name; it is differentiated later.
    refused("retained-graph", &text("self.all.append(v); v.register_hook(f)", "meter.update(loss)"));
    refused("retained-graph", &text("rows = []; rows.append(v)", "meter.update(loss)"));
    let two = format!("def update(v): pass\n{}", text("self.all.append(v)", "meter.update(loss)"));
    assert!(refused("retained-graph", &two).contains("which of several functions"));
    let later = text("self.all.append(v)", "meter.update(loss)") + "sum(meter.all).backward()\n";
    assert!(refused("retained-graph", &later).contains("differentiated later"));
}

#[test]
fn what_is_computed_with_again_stays_on_the_device() {
    let cache = "class Cache:\n    def put(self, k, v):\n        self.items[k] = v\n    def get(self, k):\n        return self.items.get(k)\n";
    let loops = "for k, x in loader:\n    y = model(x)  #!\n    cache.put(k, y)\n";
    assert!(refused("growing-residency", &format!("{cache}{loops}")).contains("taken out again"));
    let keyed = |rest: &str| format!("for k, x in loader:\n    y = model(x)  #!\n    cache[k] = y\n{rest}");
    assert!(refused("growing-residency", &keyed("    z = head(cache[k])\n")).contains("taken out again"));
    assert_eq!(
        new_lines("growing-residency", &keyed("print(len(cache), cache[0])\n"))[0],
        "    cache[k] = y.detach().cpu()"
    );
    let drawn = "for x in loader:\n    y = model(x)  #!\n    pool.append(y)\n    z = random.choice(pool)\n";
    assert!(refused("growing-residency", drawn).contains("taken out again"));
}

#[test]
fn what_a_hook_appends_goes_to_host_memory() {
    let text = |kept: &str, register: &str| {
        format!(
            "class Maps:\n    def make(self, name):\n        def hook(module, inputs, output):\n            {kept}\n        return hook\n    def attach(self, module):\n        module.{register}(self.make('a'))\nfor x in loader:\n    y = model(x)  #!\n"
        )
    };
    let one = |kept: &str| new_lines("growing-residency", &text(kept, "register_forward_hook"));
    assert_eq!(
        one("self.maps.append(output.detach())"),
        ["            self.maps.append(output.detach().cpu())"]
    );
    // One that is replaced is not what grows; a function that is registered nowhere is no hook.
    refused("growing-residency", &text("self.maps['a'] = output.detach()", "register_forward_hook"));
    refused("growing-residency", &text("self.maps.append(output.detach())", "apply"));
}

#[test]
fn a_list_gets_the_capacity_that_its_class_forgets() {
    let text = |init: &str, more: &str| {
        format!(
            "import random\nclass Replay:\n    def __init__(self, capacity):\n{init}        self.rows = []\n    def push(self, obs, act):\n        self.rows.append((obs, act))\n    def sample(self):\n        return random.choice(self.rows)\n{more}for t in range(9):\n    obs = env()  #!\n    replay.push(obs, act)\n"
        )
    };
    let stored = "        self.capacity = capacity\n";
    let lines = new_lines("growing-residency", &text(stored, ""));
    assert_eq!(lines, ["from collections import deque", "        self.rows = deque(maxlen=capacity)"]);
    let imported = format!("import collections\n{}", text("", ""));
    assert_eq!(
        new_lines("growing-residency", &imported),
        ["        self.rows = collections.deque(maxlen=capacity)"]
    );
    // The capacity is looked at; the list is used for what a deque cannot do; there is none.
    for (init, more) in [
        (stored, "print(replay.capacity)\n"),
        (stored, "print(replay.rows[1:])\n"),
        (stored, "replay.rows.sort()\n"),
        (stored, "replay.rows = []\n"),
    ] {
        refused("growing-residency", &text(init, more));
    }
    refused("growing-residency", &text(stored, "").replace("capacity", "device"));
}

#[test]
fn what_may_be_a_list_of_tensors_is_left_alone() {
    let text = |use_: &str| {
        format!("for a, b in pairs:\n    flows = model(a, b)  #! #*\n    {use_}kept.append(flows)\n")
    };
    assert!(refused("growing-residency", &text("")).contains("something else than a tensor"));
    for use_ in [
        "print(flows.shape); ",
        "show(flows * 2); ",
        "torch.save(flows, p); ",
        "criterion(flows, b).backward(); ",
    ] {
        let one_a_line = text(&use_.replace("; ", "\n    "));
        assert!(edited("growing-residency", &one_a_line).is_ok(), "{use_}");
    }
}

#[test]
fn what_is_computed_with_beside_tensors_of_the_device_stays_there() {
    let meter = |compute: &str| {
        format!(
            "class Meter:\n    def update(self, preds, target, k):\n        self.all.append((preds - target).abs().flatten())  #!\n        self.beside.append(target.clone())\n        self.host.append(target.cpu())\n        self.k = k\n    def compute(self):\n        device = self.k\n        r = torch.cat(self.all)\n{compute}"
        )
    };
    for compute in [
        "        d = torch.cat([x[::3] for x in self.beside])\n        return (r / d).median()\n",
        "        return sum(a / b for a, b in zip(self.all, self.beside))\n",
        "        for a, b in zip(self.all, self.beside):\n            a += b\n",
        "        return r > torch.zeros(3, device='cuda')\n",
        "        edges = torch.linspace(0, 1, 5, device=self.beside[0].device)\n        return torch.bucketize(r, edges)\n",
        "        count = torch.zeros(9, device=device)\n        count.index_add_(0, r, r)\n",
        "        return torch.cat([r, self.beside[0]])\n",
        "        return ratio(r, self.beside[0])\ndef ratio(a, b):\n    return a / b\n",
        "        if (top := r.max()) > self.beside[0]:\n            pass\n",
        "        return r[self.beside[0]]\n",
    ] {
        let why = refused("growing-residency", &meter(compute));
        assert!(why.contains("what stays on the device"), "{compute}{why}");
    }
    for compute in [
        "        return r.mean() / len(self.beside)\n",
        "        return r / torch.cat(self.host)\n",
        "        return r.to(self.beside[0].device) / self.beside[0]\n",
        "        return r.cuda() > torch.zeros(3, device='cuda')\n",
        "        return r > torch.zeros(3, device=r.device)\n",
        "        print(r.max().item() > self.beside[0].mean().item(), r, self.beside)\n",
        "        return Result(r, self.beside)\n",
    ] {
        let lines = new_lines("growing-residency", &meter(compute));
        assert_eq!(
            lines,
            ["        self.all.append((preds - target).abs().flatten().detach().cpu())  #!"],
            "{compute}"
        );
    }
    let lists = "def run():\n    ps, ys = [], []\n    for x, y in loader:\n        p = model(x)  #!\n        ps.append(p)\n        ys.append(y)\n    return (torch.cat(ps) == torch.cat(ys)).float().mean()\nrun()  #^\n";
    assert!(refused("growing-residency", lists).contains("`torch.cat(ps) == torch.cat(ys)`"));
}

#[test]
fn an_exception_that_is_kept_holds_the_frames_that_it_passed() {
    let text = |keeping: &str| {
        format!(
            "class Sweep:\n    def solve(self, x):\n        y = model(x)  #!\n        return y.mean()\n    def f(self, x):\n        try:\n            \
             self.means[0] = self.solve(x).item()  #^\n        except ValueError as error:\n            {keeping}\n"
        )
    };
    let reason = |keeping: &str| edited_in_place("growing-residency", &text(keeping)).unwrap_err();
    for keeping in
        ["self.failed.append((x, error))", "self.last = error", "self.failed[0] = {'error': error}"]
    {
        let reason = reason(keeping);
        assert!(reason.contains("keep the exception `error`"), "{keeping}: {reason}");
    }
    for keeping in
        ["self.failed.append(str(error))", "print(error)", "self.failed.append(f'{error}')", "raise"]
    {
        assert!(reason(keeping).contains("no statement of a known form"), "{keeping}");
    }
}

#[test]
fn a_running_average_is_kept_without_the_graph_of_all_before() {
    let text = |begins: &str, average: &str| {
        format!("{begins}\nfor x in loader:\n    loss = model(x)  #!\n    loss.backward()\n    {average}\n")
    };
    let one = |average: &str| new_lines("retained-graph", &text("mean = 0.0", average));
    assert_eq!(one("mean = 0.9 * mean + 0.1 * loss"), ["    mean = (0.9 * mean + 0.1 * loss).detach()"]);
    // A name that is bound anew keeps nothing of the turn before; what is differentiated later needs its graph; a list grows.
    refused("retained-graph", &text("mean = 0.0", "mean = 0.9 * x + 0.1 * loss"));
    let later = text("mean = 0.0", "mean = 0.9 * mean + 0.1 * loss") + "mean.backward()\n";
    assert!(refused("retained-graph", &later).contains("differentiated later"));
    assert!(
        refused("retained-graph", &text("all = []", "all = all + [loss]"))
            .contains("something else than a sum")
    );
}
