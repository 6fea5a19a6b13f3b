// Bundle the page's JavaScript into the Python package; with --check, only compare what is there.
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const TARGET = new URL("../src/heedmap/report/", import.meta.url);
const BUNDLES = {
  "comparison.js": "src/comparison_page.ts",
  "figures.js": "src/figures_page.ts",
  "report.js": "src/report_page.ts",
};
const VENDORED = ["@tanstack/virtual-core"];

async function bundle(source) {
  const result = await build({
    absWorkingDir: new URL(".", import.meta.url).pathname,
    entryPoints: [source],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none", // NOTICE has them
    write: false,
    metafile: true,
  });
  const [file] = result.outputFiles;
  return { text: file.text, inputs: Object.keys(result.metafile.inputs) };
}

async function notice(files, inputs) {
  const lock = JSON.parse(await readFile(new URL("package-lock.json", import.meta.url), "utf8"));
  const used = new Set(inputs.filter((path) => path.startsWith("node_modules/")).map(packageOf));
  const expected = [...used].sort().join();
  if (expected !== [...VENDORED].sort().join()) {
    throw new Error(`the bundles hold ${expected}: expected ${VENDORED.join()}; name all in VENDORED`);
  }
  const parts = [
    "The page's JavaScript, built from page/ by `make page`:\n",
    `* page/: sha256 ${await sourcesHash()}\n`,
    ...Object.entries(files).map(
      ([name, text]) => `* ${name}: sha256 ${createHash("sha256").update(text).digest("hex")}\n`,
    ),
  ];
  for (const name of VENDORED) {
    const { version, license, integrity } = lock.packages[`node_modules/${name}`];
    const terms = await readFile(new URL(`node_modules/${name}/LICENSE`, import.meta.url), "utf8");
    parts.push(`\nIt contains ${name} ${version} (${license}), npm package ${integrity}:\n\n${terms.trim()}\n`);
  }
  return parts.join("");
}

/** A hash of all that the bundles are made from, which a test without node compares too. */
async function sourcesHash() {
  const names = (await readdir(new URL("src/", import.meta.url))).map((name) => `src/${name}`);
  const hash = createHash("sha256");
  for (const name of [...names, "build.mjs", "package-lock.json"].sort()) {
    hash.update(`${name}\0`).update(await readFile(new URL(name, import.meta.url)));
  }
  return hash.digest("hex");
}

function packageOf(path) {
  const [first, second] = path.slice("node_modules/".length).split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}

const files = {};
const inputs = [];
for (const [name, source] of Object.entries(BUNDLES)) {
  const made = await bundle(source);
  files[name] = made.text;
  inputs.push(...made.inputs);
}
files["NOTICE"] = await notice({ ...files }, inputs);

const stale = [];
for (const [name, text] of Object.entries(files)) {
  const path = new URL(name, TARGET);
  if (!process.argv.includes("--check")) await writeFile(path, text);
  else if ((await readFile(path, "utf8").catch(() => "")) !== text) stale.push(name);
}
if (stale.length > 0) {
  console.error(`src/heedmap/report: ${stale.join(", ")} not as built from page/; run \`make page\``);
  process.exitCode = 1;
}
