// Runs JavaScript code and prints how it ended. Arguments: time limit in ms, most bytes of the printed JSON, code.
const { spawnSync } = require("node:child_process");
const [limitMs, most, code] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]];
const start = process.hrtime.bigint();
const options = { timeout: limitMs, killSignal: "SIGKILL", maxBuffer: 8 << 20, stdio: ["ignore", "pipe", "pipe"] };
const done = spawnSync(process.execPath, ["--eval", code], options);
// A child of the code may keep its streams open until the time limit. The code itself has then ended with a status.
const isLate = done.error?.code === "ETIMEDOUT", killed = isLate && done.status === null;
const isFull = done.error?.code === "ENOBUFS";
const out = (done.stdout ?? "").toString(), err = (done.stderr ?? "").toString() || (isLate || isFull ? "" : done.error?.message ?? "");
let kept = 100000, result;
for (;;) {
  const [stdout, stderr] = [out.slice(0, kept), err.slice(0, kept)];
  const truncated = isFull || stdout.length < out.length || stderr.length < err.length;
  result = JSON.stringify({
    success: done.status === 0, language: "javascript", image: "node", exitCode: done.status,
    stdout, stderr, output: stdout, truncated,
    durationMs: Number((process.hrtime.bigint() - start) / 1000000n), killed,
  });
  if (Buffer.byteLength(result) <= most || kept === 0) break;
  kept >>= 1;
}
console.log(result);
