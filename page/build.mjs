// Builds the page's program and style into the Python package; with --tests the unit tests; with --check it only
// compares: exit code 1 if the committed files are not what the sources give.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "warpline", "reports", "page");
const asked = process.argv[2] ?? "";

if (asked === "--tests") {
  const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => join(here, "test", name)),
    outdir: join(here, "build"), outExtension: { ".js": ".mjs" },
    bundle: true, platform: "node", format: "esm", target: "node20", sourcemap: "inline", logLevel: "warning",
  });
} else {
  const made = await build({
    entryPoints: [join(here, "src", "main.ts"), join(here, "src", "page.css")],
    outdir: target, write: false, bundle: true, minify: true, lineLimit: 160, charset: "utf8",
    format: "iife", target: ["es2022", "chrome111", "firefox113", "safari16.4"], logLevel: "warning", legalComments: "none",
  });
  let stale = false;
  for (const file of made.outputFiles) {
    const name = file.path.endsWith(".css") ? "bundle.css" : "bundle.js";
    if (/<\/(script|style)/i.test(file.text)) throw new Error(`${name} would end its own element`);
    const place = join(target, name);
    if (asked === "--check") {
      const same = readFileSync(place, "utf8") === file.text;
      if (!same) { stale = true; console.error(`${name} is not what the sources give: run npm run build in page/`); }
    } else {
      writeFileSync(place, file.text);
      console.log(`${name} ${(file.text.length / 1000).toFixed(1)} kB`);
    }
  }
  process.exitCode = stale ? 1 : 0;
}
