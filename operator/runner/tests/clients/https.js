// prints: hello web.example
// prints: 2000000 bytes
// prints: self-signed certificate
const fs = require("fs"), https = require("https");
const ca = fs.readFileSync(process.env.CERTIFICATE);
const read = response => new Promise(done => { let all = ""; response.on("data", piece => all += piece).on("end", () => done(all.trim())); });
(async () => {
  console.log(await new Promise(done => https.get("https://web.example/hello", { ca }, response => done(read(response)))));
  const post = { ca, method: "POST", headers: { "Content-Length": 2000000 } };
  console.log(await new Promise(done => https.request("https://web.example/count", post, response => done(read(response))).end("x".repeat(2000000))));
  await new Promise(done => https.get("https://web.example/hello", () => 0).on("error", error => { console.log(error.message); done(); }));
  process.exit(0);
})();
