// prints: hello web.example
// prints: 1000000 bytes
// prints: ENOTFOUND
// prints: EACCES
const http = require("http"), net = require("net");
(async () => {
  console.log((await (await fetch("http://web.example/hello")).text()).trim());
  console.log((await (await fetch("http://web.example/count", { method: "POST", body: "x".repeat(1000000) })).text()).trim());
  await new Promise(done => http.get("http://other.example/", () => 0).on("error", e => { console.log(e.code); done(); }));
  await new Promise(done => net.connect(81, "web.example").on("error", e => { console.log(e.code); done(); }));
  process.exit(0);
})();
