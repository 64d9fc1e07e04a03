// prints: ::ffff:127.0.0.1/1 ::ffff:127.0.0.1/2 ::ffff:127.0.0.1/3
const http = require("http");
const server = http.createServer((request, response) => response.end(request.socket.remoteAddress + request.url)).listen(0, async () => {
  const port = server.address().port;
  const texts = await Promise.all([1, 2, 3].map(async n => (await fetch(`http://127.0.0.1:${port}/${n}`)).text()));
  console.log(texts.join(" "));
  server.close(); process.exit(0);
});
