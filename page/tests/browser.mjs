// Pages of recordings, written by the binary and opened in a headless Chromium.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
// Not MEMLINT_...: memlint refuses variables of its own that it does not know.
const memlint = process.env.PAGE_TEST_BINARY ?? join(root, "target/debug/memlint");
const folder = mkdtempSync(join(tmpdir(), "memlint-page-"));

export const recording = (name) => join(root, "snapshots", name, "snapshot.pickle.zst");

/** The page of some arguments of `memlint report`. */
export function written(name, ...paths) {
  const target = join(folder, `${name}.html`);
  execFileSync(memlint, ["report", ...paths, "-o", target], { cwd: root, stdio: "ignore" });
  return target;
}

/** The page of a job of 200 ranks of which one is unlike the others. */
export function many() {
  const job = join(folder, "job");
  mkdirSync(job);
  for (let rank = 0; rank < 200; rank++) {
    const name = rank === 7 ? "seed-leak-list" : "seed-linear";
    copyFileSync(recording(name), join(job, `rank${rank}.pickle.zst`));
  }
  return written("many", job);
}

/** The page of a snapshot with hostile names. */
export function hostile() {
  const snapshot = join(folder, "hostile.pickle");
  execFileSync("python3", [join(here, "hostile.py"), snapshot]);
  return written("hostile", snapshot);
}

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--font-render-hinting=none"],
  });

/** Opens a page; `complaints` gathers whatever it should not do. */
export async function open(browser, file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, ...options });
  const complaints = [];
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    const { protocol } = new URL(request.url());
    if (protocol !== "data:" && request.url() !== `file://${file}`)
      complaints.push(`request: ${request.url()}`);
  });
  await page.goto(`file://${file}`);
  await page.waitForSelector("html[data-ready]");
  // What is drawn is drawn with the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, complaints };
}

/** How many pixels of the timeline have about this colour. */
export const pixels = (page, colour) =>
  page.evaluate((colour) => {
    const canvas = document.querySelector("canvas.timeline");
    const copy = new OffscreenCanvas(canvas.width, canvas.height - 90);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, -60);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
      const light = Math.max(data[at], data[at + 1], data[at + 2]) / Math.max(red, green, blue);
      const near = (part, of) => Math.abs(part - of * light) < 4;
      if (light > 0.6 && near(data[at], red) && near(data[at + 1], green) && near(data[at + 2], blue))
        found++;
    }
    return found;
  }, colour);

/** Waits until the frame that was asked for is drawn. */
export const drawn = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
