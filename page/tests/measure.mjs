// What the page costs: from its opening to the first paint, and the script of a frame while panning and zooming.
//
//     node tests/measure.mjs PAGE.html...

import { resolve } from "node:path";
import { drawn, launch, open } from "./browser.mjs";

const FRAMES = 120;

/** Times of callbacks of animation frames, in milliseconds. */
const timing = () => {
  const own = window.requestAnimationFrame.bind(window);
  window.frames_taken = [];
  window.requestAnimationFrame = (act) =>
    own((now) => {
      const start = performance.now();
      act(now);
      window.frames_taken.push(performance.now() - start);
    });
};

const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.floor(share * (values.length - 1))];
const shown = (values) =>
  `${quantile(values, 0.5).toFixed(1)} ms in the middle, ${quantile(values, 0.95).toFixed(1)} at 95 %, ${quantile(values, 1).toFixed(1)} at most`;

/** The times of the frames that a movement takes. */
async function frames(page, act) {
  await page.evaluate(() => {
    window.frames_taken.length = 0;
  });
  for (let turn = 0; turn < FRAMES; turn++) {
    await act(turn);
    await page.evaluate(() => new Promise((done) => setTimeout(done, 0)));
  }
  return page.evaluate(() => window.frames_taken.filter((one) => one > 0.05));
}

const browser = await launch();
for (const file of process.argv.slice(2).map((one) => resolve(one))) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(timing);
  const { page, complaints } = await open({ newPage: () => context.newPage() }, file);
  const paint = await page.evaluate(() => performance.now());
  const scripts = await page.evaluate(() =>
    performance.getEntriesByType("paint").map((one) => one.startTime),
  );
  const memory = await page.evaluate(() => performance.memory.usedJSHeapSize / (1 << 20));
  const canvas = page.locator("canvas.timeline");
  const lives = await canvas.getAttribute("data-lives");
  await canvas.focus();
  for (let turn = 0; turn < 5; turn++) await page.keyboard.press("+");
  await drawn(page);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 600, box.y + 200);
  await page.mouse.down();
  const panned = await frames(page, (turn) => page.mouse.move(box.x + 600 + 7 * (turn % 30), box.y + 200));
  await page.mouse.up();
  const zoomed = await frames(page, (turn) => page.mouse.wheel(0, turn % 40 < 20 ? -60 : 60));
  console.log(`${file}: ${lives} lifetimes one by one, heap ${memory.toFixed(0)} MiB`);
  console.log(
    `  ready and painted after ${paint.toFixed(0)} ms (first paint of the browser ${scripts.map((one) => one.toFixed(0)).join(", ")} ms)`,
  );
  console.log(`  panning: ${shown(panned)}`);
  console.log(`  zooming: ${shown(zoomed)}`);
  if (complaints.length > 0) console.log(complaints);
  await context.close();
}
await browser.close();
