// Writes ../bundle from the page's sources and the packages of the lock file. `npm ci --ignore-scripts && node build.mjs`; test/explorer/bundle.py holds
// the two against each other by the sums in bundle/sums.txt, without npm.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url)), bundle = join(here, "..", "bundle");
const sources = ["build.mjs", "package.json", "package-lock.json", "index.html", "icon.svg", "style.css",
  ...readdirSync(join(here, "src")).filter((name) => /\.jsx?$/.test(name)).map((name) => "src/" + name)].sort();

const made = await build({
  absWorkingDir: here,
  metafile: true,
  entryPoints: { explorer: "src/main.jsx" },
  outdir: bundle,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
});
await build({ absWorkingDir: here, entryPoints: { explorer: "style.css" }, outdir: bundle, minify: true });
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(here, name), join(bundle, name));

// What the packages inside ask for: their names and licences go with them.
const packages = [...new Set(Object.keys(made.metafile.inputs).map((name) => name.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean))].sort();
const licences = packages.map((name) => {
  const folder = join(here, "node_modules", name), { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version}, ${license}\n\n${readFileSync(["LICENSE", "LICENSE.md", "license"].map((f) => join(folder, f)).find(existsSync), "utf8").trim()}\n`;
});
writeFileSync(join(bundle, "licenses.txt"), `explorer.js contains these packages.\n\n${licences.join("\n----\n\n")}`);

const sum = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");
const lines = [
  ...sources.map((name) => `${sum(join(here, name))}  page/${name}`),
  ...["explorer.css", "explorer.js", "icon.svg", "index.html", "licenses.txt"].map((name) => `${sum(join(bundle, name))}  bundle/${name}`),
];
writeFileSync(join(bundle, "sums.txt"), lines.join("\n") + "\n");
