// The published JavaScript client and an image that takes long: node image.mjs HOST:PORT KEY IMAGE
import assert from "node:assert/strict";
import { Sandbox } from "@alibaba-group/opensandbox";

const [domain, apiKey, image] = process.argv.slice(2);
const box = await Sandbox.create({
  connectionConfig: { domain, apiKey },
  image,
  resource: { cpu: "1", memory: "256Mi" },
  readyTimeoutSeconds: 120,
});
const said = await box.commands.run("cat /own");
assert.deepEqual(said.logs.stdout.map((message) => message.text), ["pulled"]);
assert.equal((await box.getInfo()).status.state, "Running");
await box.kill();
await box.close();
console.log("ok image");
