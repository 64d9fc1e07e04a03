// Reads the input as JSON from standard input, and prints the output as JSON.
const request = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const words = request.text.split(/\s+/).filter((word) => word !== "");
console.log(JSON.stringify({ words: words.length }));
