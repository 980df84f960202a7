// Builds page.html: one file with the page's style and script, and the policy that allows these two and nothing else.
//
//     node build.mjs            writes page.html
//     node build.mjs --check    fails where page.html is not what the sources give

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = dirname(fileURLToPath(import.meta.url));
const target = join(folder, "page.html");
const read = (name) => readFileSync(join(folder, name), "utf8");

// What would turn text into markup or code. The policy forbids it to the browser, too.
const MARKUP =
  /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("on/;
for (const name of readdirSync(join(folder, "src")).filter((name) => name.endsWith(".ts"))) {
  const found = read(join("src", name)).match(MARKUP);
  if (found) throw new Error(`src/${name} uses ${found[0]}: text is put into the page as text alone`);
}

const bundle = async (entry, options) => {
  const result = await build({
    entryPoints: [join(folder, entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    legalComments: "none",
    ...options,
  });
  return result.outputFiles[0].text.trim();
};
const script = await bundle("src/main.ts", { format: "iife", target: "es2022" });
const style = await bundle("src/style.css", { target: "chrome110" });
if (script.includes("</script") || style.includes("</style")) throw new Error("the page would end early");

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "connect-src 'none'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const page = read("src/skeleton.html")
  .replace("@policy@", () => policy)
  .replace("@style@", () => style)
  .replace("@script@", () => script);

if (!process.argv.includes("--check")) {
  writeFileSync(target, page);
  console.log(`page.html: ${page.length} bytes`);
} else if (readFileSync(target, "utf8") !== page) {
  console.error("page.html is not what its sources give: run `npm run build` in page/ and commit it");
  process.exit(1);
}
