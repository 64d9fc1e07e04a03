// Runs inside the node image: the version, core modules, Intl with other locales than English, scratch.
const assert = require("node:assert");
const fs = require("node:fs");

assert(Number(process.versions.node.split(".")[0]) >= 24, process.version);
for (const name of require("node:module").builtinModules) {
  // Not for use: inspector parts that warn, and those that open a network.
  if (!name.startsWith("_") && name !== "trace_events" && name !== "sys") require(name);
}

assert.strictEqual(require("node:crypto").createHash("sha256").digest("hex").slice(0, 8), "e3b0c442");
assert.strictEqual(require("node:zlib").gunzipSync(require("node:zlib").gzipSync("x")).toString(), "x");
assert.strictEqual(new Intl.NumberFormat("de-DE").format(1234.5), "1.234,5");
assert.strictEqual(new Intl.DateTimeFormat("en-GB", { timeZone: "Asia/Tokyo", hour: "2-digit" }).format(0), "09");
assert.deepStrictEqual(["ö", "z", "a"].sort(new Intl.Collator("sv").compare), ["a", "z", "ö"]);
assert.strictEqual(new TextDecoder("shift_jis").decode(new Uint8Array([0x82, 0xa0])), "あ");
assert.strictEqual(typeof fetch, "function");

assert.strictEqual(process.getuid(), 65532);
assert.strictEqual(require("node:os").tmpdir(), "/dev/shm");
for (const folder of ["/", "/etc", "/tmp", "/var/tmp", "/run"]) {
  assert.throws(() => fs.writeFileSync(`${folder}/x`, ""), /EROFS|EACCES|ENOENT/, folder);
}

import("node:path").then(() => console.log("node:", process.versions.node));
