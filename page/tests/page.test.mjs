// The page, clicked through in a browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drawn, hostile, launch, many, open, pixels, recording, root, written } from "./browser.mjs";

const PARAMETER = "#0072b2";
const GRADIENT = "#e69f00";
const FIRST = ".card:first-of-type .head";

let browser;
let bug;
before(async () => {
  browser = await launch();
  bug = written("bug", recording("seed-resnet50-bug"));
});
after(() => browser.close());

const view = (page) =>
  page.locator(".window").evaluate((one) => (one.hidden ? 100 : Number.parseFloat(one.style.width)));

test("a page asks for nothing and complains of nothing", async () => {
  const { page, complaints } = await open(browser, bug);
  assert.match(await page.title(), /^memlint: 1 error, 1 note$/);
  assert.match(await page.locator(".about").innerText(), /5 iterations of .*train\.py/);
  assert.ok((await pixels(page, PARAMETER)) > 5000 && (await pixels(page, GRADIENT)) > 5000);
  await page.getByRole("button", { name: "Time", exact: true }).click();
  await page.getByRole("button", { name: "Iterations", exact: true }).click();
  for (const colour of ["Line", "Phase", "Stream", "Role"]) {
    await page.getByRole("button", { name: colour, exact: true }).click();
    await drawn(page);
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a finding lights up what it is about, and nothing else", async () => {
  const { page, complaints } = await open(browser, bug);
  await page.locator(FIRST).click();
  await drawn(page);
  assert.equal(await page.locator(".card.chosen .lights").innerText(), "lights up 161 lifetimes");
  assert.equal(await pixels(page, PARAMETER), 0);
  assert.ok((await pixels(page, GRADIENT)) > 5000);
  assert.match(await page.locator(".card.chosen mark").innerText(), /backward\(\)/);
  await page.keyboard.press("Escape");
  await drawn(page);
  assert.ok((await pixels(page, PARAMETER)) > 5000);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("without the finding less is in use", async () => {
  const { page } = await open(browser, bug);
  const heading = page.locator(".panels h2");
  assert.match(await heading.innerText(), /^448\.4 MiB in use at event [\d,]+, the peak/);
  await page.locator(FIRST).click();
  await page.locator(".card.chosen .without input").check();
  await drawn(page);
  const without = Number.parseFloat(await heading.innerText());
  assert.ok(without < 423.3 && without > 300, `${without} MiB`);
  await page.locator(".card.chosen .without input").uncheck();
  assert.match(await heading.innerText(), /^448\.4 MiB/);
  await page.close();
});

test("pointing shows the stack and the lifetime, pressing keeps them", async () => {
  const { page } = await open(browser, bug);
  const canvas = page.locator("canvas.timeline");
  await canvas.hover({ position: { x: 500, y: 300 } });
  await drawn(page);
  const tip = await page.locator(".tip").innerText();
  assert.match(tip, /(MiB|KiB) \w+/);
  assert.match(tip, /train\.py:\d+ \w+|older than the recording/);
  await canvas.click({ position: { x: 500, y: 250 } });
  assert.match(await page.locator(".selected").innerText(), /made at event [\d,]+|older than the recording/);
  assert.match(await page.locator(".selected").innerText(), /0x7f[0-9a-f]+/);
  assert.match(await page.locator(".panels h2").innerText(), /iteration [2-5]/);
  await page.close();
});

test("wheel, drag, keys and the overview zoom and move", async () => {
  const { page, complaints } = await open(browser, bug);
  const canvas = page.locator("canvas.timeline");
  assert.equal(await view(page), 100);
  await canvas.hover({ position: { x: 500, y: 300 } });
  for (let turn = 0; turn < 6; turn++) await page.mouse.wheel(0, -240);
  await drawn(page);
  const near = await view(page);
  assert.ok(near < 30, `${near} % in view`);
  const left = () => page.locator(".window").evaluate((one) => Number.parseFloat(one.style.left));
  const before = await left();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 500, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 200, { steps: 8 });
  await page.mouse.up();
  await drawn(page);
  assert.ok((await left()) > before + 1, "dragged to the left, the view moves to the right");
  await canvas.focus();
  await page.keyboard.press("-");
  await drawn(page);
  assert.ok((await view(page)) > near);
  await page.keyboard.press("0");
  await drawn(page);
  assert.equal(await view(page), 100);
  for (const axis of ["Time", "Iterations"]) {
    await page.getByRole("button", { name: axis, exact: true }).click();
    await canvas.focus();
    await page.keyboard.press("+");
    await drawn(page);
    assert.ok(Math.abs((await view(page)) - 66.7) < 1, `${axis}: ${await view(page)} %`);
  }
  await page.keyboard.press("n");
  assert.equal(await page.locator(".card.chosen").count(), 1);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("keys move the timeline wherever the focus is", async () => {
  const { page } = await open(browser, bug);
  await page.locator(FIRST).click();
  for (const focus of [".card.chosen .without input", ".card.chosen .head", ".controls button"]) {
    await page.locator(focus).first().focus();
    const before = await view(page);
    await page.keyboard.press("+");
    await drawn(page);
    assert.ok((await view(page)) < before - 5, `${focus}: ${await view(page)} % in view`);
    const left = () => page.locator(".window").evaluate((one) => Number.parseFloat(one.style.left));
    const from = await left();
    await page.keyboard.press("ArrowRight");
    await drawn(page);
    assert.ok((await left()) > from, focus);
    await page.keyboard.press("0");
    await drawn(page);
    assert.equal(await view(page), 100, focus);
  }
  await page.locator(".card.chosen .without input").focus();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".card.chosen").count(), 0);
  await page.close();
});

test("what was panned is what is painted anew", async () => {
  const { page } = await open(browser, bug);
  const canvas = page.locator("canvas.timeline");
  const image = () => canvas.evaluate((one) => one.toDataURL());
  await canvas.focus();
  for (let turn = 0; turn < 4; turn++) await page.keyboard.press("+");
  await drawn(page);
  for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight"]) {
    await page.keyboard.press(key);
    await drawn(page);
  }
  const panned = await image();
  // A change of colours and back paints everything from the start.
  await page.getByRole("button", { name: "Phase", exact: true }).click();
  await page.getByRole("button", { name: "Role", exact: true }).click();
  await drawn(page);
  assert.equal(await image(), panned);
  await page.close();
});

test("the panels say who holds the memory, where it lies, and the same as tables", async () => {
  const { page } = await open(browser, bug);
  assert.match(await page.locator(".flame .row").first().innerText(), /^all 448\.4 MiB \(100 %\)/);
  const roles = await page.locator(".flame .row").nth(1).locator("button").allInnerTexts();
  assert.ok(
    roles.some((one) => one.startsWith("gradient 97.5 MiB")),
    roles.join(),
  );
  await page.getByRole("button", { name: "By calls" }).click();
  assert.match(await page.locator(".flame").innerText(), /train\.py:17 run_resnet50/);
  await page.getByRole("button", { name: "Segments" }).click();
  assert.match(await page.locator(".panels .summary").innerText(), /segments hold 472 MiB from the driver/);
  await page.getByRole("button", { name: "Lines", exact: true }).click();
  assert.match(await page.locator("table").first().innerText(), /train\.py:17/);
  await page.getByRole("button", { name: "Iterations and roles" }).click();
  assert.equal(await page.locator("table", { hasText: "Iterations" }).locator("tbody tr").count(), 5);
  await page.close();
});

test("what people look for at the peak is called by its name", async () => {
  const { page, complaints } = await open(browser, written("logits", recording("overlap-lm-logits-bug")));
  const known = page.locator(".panels .known");
  assert.match(
    await known.innerText(),
    /^Known by name: logits 1\.5 GiB \(\d+ %\), backward of cross entropy 1\.5 GiB .*, inside cross entropy/,
  );
  const boxes = (nth) => page.locator(".flame .row").nth(nth).locator("button").allInnerTexts();
  assert.ok(
    (await boxes(2)).some((one) => one.startsWith("logits 1.5 GiB")),
    "below the activations",
  );
  assert.match((await boxes(0)).join(), /^all 4\.\d GiB \(100 %\)/, "what has no name is there, too");
  assert.ok((await boxes(1)).some((one) => one.startsWith("optimizer state ")));
  await page.locator("canvas.timeline").click({ position: { x: 90, y: 300 } });
  assert.doesNotMatch(await known.innerText(), /backward of cross entropy/, "it follows the moment");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a finding about no lifetime shows the moment and what the allocator held", async () => {
  const { page, complaints } = await open(browser, written("fragmented", recording("seed-fragmentation")));
  const card = page.locator(".card", { hasText: "fragmentation" }).first();
  await card.locator(".head").click();
  await drawn(page);
  assert.match(
    await card.locator(".lights").innerText(),
    /^is about no one lifetime; goes to where (memory ran out|most is reserved beside what is in use)$/,
  );
  assert.match(await page.locator(".panels .summary").innerText(), /segments hold .* from the driver/);
  assert.doesNotMatch(await page.locator(".panels h2").innerText(), /, the peak/);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("what a CUDA graph's pool keeps is not called releasable", async () => {
  const { page, complaints } = await open(browser, written("graphs", recording("graphpool-buckets-bug")));
  await page.locator(".card", { hasText: "private-pool-waste" }).locator(".head").click();
  const summary = await page.locator(".panels .summary").innerText();
  const bytes = (text) => {
    const [, number, unit] = text.match(/^([\d.]+) ([KMG])iB/);
    return Number(number) * { K: 2 ** -20, M: 2 ** -10, G: 1 }[unit];
  };
  const [loose, kept] = ["free and releasable", "free in private pools"].map((what) =>
    bytes(summary.match(new RegExp(`([\\d.]+ [KMG]iB) ${what}`))[1]),
  );
  assert.ok(kept > 1.2 && loose < 0.6, summary);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("dark is dark, light is light, and a press changes it", async () => {
  const light = async (page) => {
    const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    return Number.parseInt(colour.match(/\d+/)[0], 10) > 128;
  };
  const { page } = await open(browser, bug, { colorScheme: "dark" });
  assert.equal(await light(page), false);
  await page.getByRole("button", { name: "Dark / light" }).click();
  assert.equal(await light(page), true);
  await page.close();
});

test("nothing runs out of a hostile snapshot", async () => {
  const { page, complaints } = await open(browser, hostile());
  for (const tab of ["By calls", "Segments", "Lines", "Iterations and roles", "Who holds it"]) {
    await page.getByRole("button", { name: tab, exact: true }).click();
  }
  for (let x = 100; x < 700; x += 60) await page.mouse.move(x, 600);
  await page.locator("canvas.timeline").click({ position: { x: 600, y: 380 } });
  for (const head of await page.locator(".head").all()) await head.click();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img, svg, b").count(), 0);
  await page.getByRole("button", { name: "Who holds it" }).click();
  await page.getByRole("button", { name: "By calls" }).click();
  const shown = await page.locator("body").innerText();
  assert.ok(shown.includes("<img src=x onerror='window.hacked = 1'>"), "it is there, as text");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a script of one's own is refused", async () => {
  const { page } = await open(browser, bug);
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.textContent = "window.hacked = 1";
      document.body.append(script);
    } catch {
      return "refused";
    }
    return window.hacked === undefined ? "refused" : "ran";
  });
  assert.equal(ran, "refused");
  const fetched = await page.evaluate(() =>
    fetch("https://example.com/").then(
      () => "sent",
      () => "refused",
    ),
  );
  assert.equal(fetched, "refused");
  await page.close();
});

test("a base is shown beside its successor", async () => {
  const file = written(
    "against",
    recording("seed-resnet50-bug"),
    "--against",
    recording("seed-resnet50-fixed"),
  );
  const { page, complaints } = await open(browser, file);
  const canvases = page.locator("canvas.timeline");
  const [head, base] = [canvases.nth(0), canvases.nth(1)];
  assert.equal(await canvases.count(), 2);
  assert.match(await page.locator(".differences").innerText(), /missing-zero-grad/);
  assert.match(await base.getAttribute("aria-label"), /^The base's memory over iterations: 5 iterations/);
  const sizes = await canvases.evaluateAll((all) => all.map((one) => [one.width, one.height].join()));
  assert.equal(sizes[0], sizes[1], "to the same scale");
  // Each answers to pointing and pressing, and says of which it speaks.
  for (const canvas of [head, base]) {
    await canvas.hover({ position: { x: 600, y: 250 } });
    await drawn(page);
    assert.match(await page.locator(".tip").innerText(), /MiB[\s\S]*(made at event|older than)/);
    const [tip, box] = [await page.locator(".tip").boundingBox(), await canvas.boundingBox()];
    assert.ok(tip.y >= box.y && tip.y < box.y + box.height, "where one points");
  }
  await base.click({ position: { x: 600, y: 250 } });
  assert.match(await page.locator(".panels h2").innerText(), /^The base: /);
  await head.click({ position: { x: 600, y: 250 } });
  assert.doesNotMatch(await page.locator(".panels h2").innerText(), /^The base: /);
  // Whichever is moved, both show the same iterations.
  const views = () => canvases.evaluateAll((all) => all.map((one) => one.dataset.view));
  const whole = await views();
  for (const [canvas, key] of [
    [base, "+"],
    [head, "+"],
    [base, "ArrowRight"],
  ]) {
    await canvas.focus();
    const before = (await views())[0];
    await page.keyboard.press(key);
    await drawn(page);
    const [one, other] = await views();
    assert.equal(one, other);
    assert.notEqual(one, before);
  }
  await page.keyboard.press("0");
  await drawn(page);
  assert.deepEqual(await views(), whole);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a longer base shows all of itself, and what is shorter ends where it ends", async () => {
  const file = written("longer", recording("seed-resnet50-fixed"), "--against", recording("grow-replay-bug"));
  const { page, complaints } = await open(browser, file);
  const views = await page
    .locator("canvas.timeline")
    .evaluateAll((all) => all.map((one) => one.dataset.view));
  assert.equal(views[0], views[1]);
  assert.match(views[0], /^0\.000 to 3\d\./, "as many iterations as the longer one has");
  const last = () =>
    page
      .locator("canvas.timeline")
      .first()
      .evaluate((one) => {
        const [x, y] = [one.width - 60, one.height - 40];
        return [...one.getContext("2d").getImageData(x, y, 1, 1).data].join();
      });
  assert.equal(await last(), "255,255,255,255", "nothing is in use after the end of the shorter one");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("several ranks are strips, and the one that differs comes first", async () => {
  const { page, complaints } = await open(
    browser,
    written("ranks", join(root, "snapshots/ranks/fsdp-imbalance")),
  );
  const strips = await page.locator(".strip").count();
  assert.ok(strips > 1, `${strips} strips`);
  const first = page.locator(".strip").first();
  assert.equal(await first.getAttribute("aria-pressed"), "true");
  await page.locator(".strip").nth(1).click();
  assert.equal(await first.getAttribute("aria-pressed"), "false");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the strips of two devices say which is which", async () => {
  const files = {
    devices: [join(root, "snapshots/ranks/two-devices")],
    paths: [recording("seed-resnet50-bug"), recording("seed-resnet50-fixed")],
  };
  const expected = { devices: ["device 0", "device 1"], paths: ["seed-resnet50-bug", "seed-resnet50-fixed"] };
  for (const [name, paths] of Object.entries(files)) {
    const { page } = await open(browser, written(`strips-${name}`, ...paths));
    const names = page.locator(".strip .name");
    assert.deepEqual((await names.allInnerTexts()).sort(), expected[name]);
    const cut = await names.evaluateAll(
      (all) => all.filter((one) => one.scrollWidth > one.clientWidth).length,
    );
    assert.equal(cut, 0, "no name is cut off");
    assert.match(await page.locator(".strip").first().getAttribute("title"), /pickle/, "the whole name");
    await page.close();
  }
});

test("of many ranks some are drawn, and the others are curves for whoever opens them", async () => {
  const { page, complaints } = await open(browser, many());
  assert.match(await page.locator(".strips h2").innerText(), /^3 of 200 timelines/);
  assert.match(await page.locator(".strip .name").first().innerText(), /^rank 7$/);
  const others = page.locator(".many");
  assert.equal(await others.count(), 1);
  assert.match(
    await others.locator("summary").innerText(),
    /^197 more, alike, as curves: ranks 0-6, 8-199 of /,
  );
  assert.equal(await page.locator(".strip.low").count(), 0, "nothing of them before they are asked for");
  await others.locator("summary").click();
  await page.waitForFunction(() => document.querySelector(".strip.low canvas")?.width > 100);
  assert.equal(await page.locator(".strip.low").count(), 197);
  assert.match(await page.locator(".strip.low").first().innerText(), /rank 1/);
  const painted = (nth) =>
    page
      .locator(".strip.low canvas")
      .nth(nth)
      .evaluate((one) => one.style.height);
  assert.deepEqual([await painted(0), await painted(196)], ["16px", ""], "what is out of view is not drawn");
  await page.locator(".strip:not(.low)").nth(1).click();
  assert.match(await page.locator(".about h2").innerText(), /rank\d+\.pickle/);
  const paint = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0].startTime,
  );
  assert.ok(paint < 5000, `${paint} ms`);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the labels of marks do not overlap, nor leave the timeline", async () => {
  for (const width of [1280, 1920]) {
    const oom = written("oom", recording("seed-oom"));
    const { page } = await open(browser, oom, { viewport: { width, height: 1000 } });
    const canvas = page.locator("canvas.timeline");
    const labels = (await canvas.getAttribute("data-labels"))
      .split(";")
      .map((one) => one.split(" ").map(Number));
    assert.ok(labels.length >= 2, "the peak, and the request that failed");
    const right = await canvas.evaluate((one) => one.width);
    labels.forEach((one, at) => {
      assert.ok(one[0] >= 0 && one[2] <= right, `${one}`);
      for (const other of labels.slice(0, at))
        assert.ok(one[0] >= other[2] || other[0] >= one[2] || one[1] >= other[3] || other[1] >= one[3]);
    });
    await page.close();
  }
});

test("what cannot be drawn says so", async () => {
  const { page, complaints } = await open(browser, written("nostacks", recording("nostacks-bug")));
  assert.ok((await page.locator("canvas.timeline, .nothing").count()) > 0);
  assert.deepEqual(complaints, []);
  await page.close();
});
