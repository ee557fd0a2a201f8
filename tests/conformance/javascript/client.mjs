// The published JavaScript client: node client.mjs HOST:PORT KEY
import assert from "node:assert/strict";
import { Sandbox, SandboxApiException, SandboxManager } from "@alibaba-group/opensandbox";

const [domain, apiKey] = process.argv.slice(2);
const image = "opensandbox/code-interpreter:latest";
const resource = { cpu: "1", memory: "256Mi" };
const config = (options = {}) => ({ domain, apiKey, ...options });
const make = (options = {}) =>
  Sandbox.create({ connectionConfig: config(), image, resource, ...options });
const text = (execution) => execution.logs.stdout.map((message) => message.text).join("\n");

async function eventually(fact) {
  const end = Date.now() + 60_000;
  for (;;) {
    const value = await fact();
    if (value) return value;
    assert.ok(Date.now() < end, "not in time");
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

async function remove(box) {
  await box.kill();
  await box.close();
}

async function failure(call) {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof SandboxApiException, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: "nothing was thrown" });
}

const cases = {
  async lifecycle() {
    const box = await make({ env: { A: "one" }, metadata: { team: "red" }, timeoutSeconds: 300 });
    const info = await box.getInfo();
    assert.equal(info.id, box.id);
    assert.equal(info.status.state, "Running");
    assert.deepEqual(info.metadata, { team: "red" });
    assert.ok(info.expiresAt > info.createdAt);
    assert.ok(await box.isHealthy());
    assert.equal(text(await box.commands.run("echo $A")), "one");
    const other = await Sandbox.connect({ sandboxId: box.id, connectionConfig: config() });
    assert.equal(text(await other.commands.run("echo $A")), "one");
    await other.close();
    await remove(box);
  },

  async manualCleanup() {
    const box = await make({ timeoutSeconds: null, entrypoint: ["sleep", "1000"] });
    const info = await box.getInfo();
    assert.equal(info.expiresAt ?? null, null);
    assert.deepEqual(info.entrypoint, ["sleep", "1000"]);
    await remove(box);
  },

  async commands(box) {
    const seen = [];
    const handlers = {
      onInit: (init) => void seen.push(["init", init.id]),
      onStdout: (message) => void seen.push(["out", message.text]),
      onStderr: (message) => void seen.push(["err", message.text]),
      onExecutionComplete: () => void seen.push(["complete"]),
      onError: (error) => void seen.push(["error", error.value]),
    };
    const done = await box.commands.run("echo one; echo two >&2; echo three", {}, handlers);
    assert.equal(done.exitCode, 0);
    assert.deepEqual(seen[0], ["init", done.id]);
    assert.deepEqual(seen.at(-1), ["complete"]);
    assert.deepEqual(seen.slice(1, -1).sort(), [["err", "two"], ["out", "one"], ["out", "three"]]);
    const failed = await box.commands.run("exit 7", {}, handlers);
    assert.equal(failed.exitCode, 7);
    assert.deepEqual(seen.at(-1), ["error", "7"]);
    const options = { workingDirectory: "/tmp", envs: { X: "y" }, uid: 65534, gid: 65534 };
    const out = text(await box.commands.run("pwd; echo $X; id -u; id -g", options));
    assert.deepEqual(out.split("\n"), ["/tmp", "y", "65534", "65534"]);
    const late = await box.commands.run("sleep 1000", { timeoutSeconds: 1 });
    assert.ok(late.error);
    const types = [];
    for await (const event of box.commands.runStream("echo streamed")) types.push(event.type);
    assert.equal(types[0], "init");
    assert.ok(types.includes("stdout"));
    assert.equal(types.at(-1), "execution_complete");
  },

  async background(box) {
    const command = "echo first; sleep 0.2; echo last; exit 3";
    const started = await box.commands.run(command, { background: true });
    const status = await eventually(async () => {
      const now = await box.commands.getCommandStatus(started.id);
      return !now.running && now;
    });
    assert.equal(status.exitCode, 3);
    const logs = await box.commands.getBackgroundCommandLogs(started.id);
    assert.deepEqual(logs.content.trim().split("\n"), ["first", "last"]);
    const rest = await box.commands.getBackgroundCommandLogs(started.id, logs.cursor);
    assert.equal(rest.content, "");
    const endless = await box.commands.run("sleep 1000", { background: true });
    await box.commands.interrupt(endless.id);
    await eventually(async () => !(await box.commands.getCommandStatus(endless.id)).running);
  },

  async sessions(box) {
    const session = await box.commands.createSession({ workingDirectory: "/tmp" });
    assert.equal(text(await box.commands.runInSession(session, "export KEPT=1; pwd")), "/tmp");
    assert.equal(text(await box.commands.runInSession(session, "echo $KEPT")), "1");
    await box.commands.deleteSession(session);
  },

  async files(box) {
    const bytes = Uint8Array.from({ length: 256_000 }, (_, i) => i % 256);
    await box.files.createDirectories([{ path: "/data/a/b", mode: 755 }]);
    await box.files.writeFiles([
      { path: "/data/a/one.txt", data: "first\nsecond\n", mode: 640 },
      { path: "/data/a/two.bin", data: bytes, mode: 644 },
    ]);
    assert.equal(await box.files.readFile("/data/a/one.txt"), "first\nsecond\n");
    assert.deepEqual(await box.files.readBytes("/data/a/two.bin"), bytes);
    const part = await box.files.readBytes("/data/a/two.bin", { range: "bytes=1-3" });
    assert.deepEqual([...part], [1, 2, 3]);
    let length = 0;
    for await (const chunk of box.files.readBytesStream("/data/a/two.bin")) length += chunk.length;
    assert.equal(length, bytes.length);
    const info = async (path) => (await box.files.getFileInfo([path]))[path];
    assert.equal((await info("/data/a/one.txt")).mode, 640);
    await box.files.setPermissions([{ path: "/data/a/one.txt", mode: 600, owner: "nobody" }]);
    assert.equal((await info("/data/a/one.txt")).owner, "nobody");
    await box.files.replaceContents([
      { path: "/data/a/one.txt", oldContent: "first", newContent: "1st" },
    ]);
    assert.equal(await box.files.readFile("/data/a/one.txt"), "1st\nsecond\n");
    const found = await box.files.search({ path: "/data", pattern: "*.bin" });
    assert.deepEqual(found.map((entry) => entry.path), ["/data/a/two.bin"]);
    const listed = await box.files.listDirectory({ path: "/data/a", depth: 1 });
    assert.equal(listed.length, 3);
    await box.files.moveFiles([{ src: "/data/a/one.txt", dest: "/data/a/b/three.txt" }]);
    await box.files.deleteFiles(["/data/a/two.bin"]);
    await box.files.deleteDirectories(["/data/a"]);
    assert.deepEqual(await box.files.search({ path: "/data", pattern: "*" }), []);
  },

  async metrics(box) {
    const metrics = await box.getMetrics();
    assert.ok(metrics.cpuCount > 0 && metrics.memoryTotalMiB > metrics.memoryUsedMiB);
  },

  async pauseAndResume() {
    const box = await make();
    await box.pause();
    await eventually(async () => (await box.getInfo()).status.state === "Paused");
    const resumed = await box.resume();
    assert.equal(text(await resumed.commands.run("echo back")), "back");
    assert.equal((await resumed.getInfo()).status.state, "Running");
    await remove(resumed);
  },

  async renew(box) {
    await box.renew(1800);
    const left = (await box.getInfo()).expiresAt - Date.now();
    assert.ok(left > 1_500_000 && left < 1_860_000);
  },

  async managerFilters() {
    const run = `run-${process.hrtime.bigint()}`;
    const boxes = [];
    for (const n of ["0", "1", "0"]) boxes.push(await make({ metadata: { run, n } }));
    const ids = boxes.map((box) => box.id);
    const manager = SandboxManager.create({ connectionConfig: config() });
    const list = async (filter) =>
      (await manager.listSandboxInfos(filter)).items.map((item) => item.id).sort();
    assert.deepEqual(await list({ metadata: { run } }), [...ids].sort());
    assert.deepEqual(await list({ metadata: { run, n: "1" } }), [ids[1]]);
    const page = await manager.listSandboxInfos({ metadata: { run }, pageSize: 2, page: 2 });
    assert.equal(page.items.length, 1);
    assert.equal(page.pagination.totalItems, 3);
    await manager.pauseSandbox(ids[1]);
    const paused = { metadata: { run }, states: ["Paused"] };
    await eventually(async () => (await list(paused))[0] === ids[1]);
    await manager.resumeSandbox(ids[1]);
    await manager.renewSandbox(ids[1], 1200);
    for (const box of boxes) {
      await manager.killSandbox(box.id);
      await box.close();
    }
    await manager.close();
  },

  async metadataPatch(box) {
    await box.patchMetadata({ color: "blue", size: "big" });
    const info = await box.patchMetadata({ color: null, size: "small" });
    assert.deepEqual(info.metadata, { size: "small" });
  },

  async endpoints(box) {
    const direct = await box.getEndpoint(44772);
    assert.ok(direct.endpoint);
    const names = Object.keys(direct.headers ?? {}).map((name) => name.toLowerCase());
    assert.ok(names.includes("x-execd-access-token"));
    const proxied = await Sandbox.connect({
      sandboxId: box.id,
      connectionConfig: config({ useServerProxy: true }),
    });
    const { endpoint } = await proxied.getEndpoint(44772);
    assert.ok(endpoint.includes(`/sandboxes/${box.id}/proxy/44772`), endpoint);
    assert.equal(text(await proxied.commands.run("echo through")), "through");
    await proxied.close();
  },

  async snapshots(box) {
    await box.commands.run("mkdir -p /tmp/kept && printf marker > /tmp/kept/file");
    const manager = SandboxManager.create({ connectionConfig: config() });
    const accepted = await manager.createSnapshot(box.id, { name: "from-javascript" });
    assert.equal(accepted.sandboxId, box.id);
    assert.equal(accepted.status.state, "Creating");
    const ready = await eventually(async () => {
      const now = await manager.getSnapshot(accepted.id);
      return now.status.state !== "Creating" && now;
    });
    assert.equal(ready.status.state, "Ready", ready.status.message);
    for (const wanted of [{ sandboxId: box.id }, { name: "from-javascript" }, { states: ["Ready"], sandboxId: box.id }]) {
      const page = await manager.listSnapshots(wanted);
      assert.deepEqual(page.items.map((snapshot) => snapshot.id), [ready.id]);
    }
    const restored = await Sandbox.create({ connectionConfig: config(), snapshotId: ready.id, resource });
    assert.equal((await restored.getInfo()).snapshotId, ready.id);
    assert.equal(text(await restored.commands.run("cat /tmp/kept/file")), "marker");
    await remove(restored);
    await manager.deleteSnapshot(ready.id);
    assert.equal((await failure(() => manager.getSnapshot(ready.id))).statusCode, 404);
    await manager.close();
  },

  async namedVolumes() {
    const volume = { name: "data", pvc: { claimName: "javascript-data" }, mountPath: "/mnt/data" };
    const first = await make({ volumes: [volume] });
    const second = await make({ volumes: [{ ...volume, readOnly: true }] });
    await first.commands.run("mkdir -p /mnt/data/a && echo shared > /mnt/data/a/file");
    assert.equal(text(await second.commands.run("cat /mnt/data/a/file")), "shared");
    assert.ok((await second.commands.run("touch /mnt/data/no")).error);
    const part = await make({ volumes: [{ ...volume, subPath: "a" }] });
    assert.equal(text(await part.commands.run("cat /mnt/data/file")), "shared");
    const host = { name: "etc", host: { path: "/etc" }, mountPath: "/mnt/etc" };
    const refused = await failure(() => make({ volumes: [host] }));
    assert.equal(refused.statusCode, 400);
    assert.equal(refused.error.code, "VOLUME::HOST_PATH_NOT_ALLOWED");
    for (const box of [first, second, part]) await remove(box);
  },

  async networkPolicies() {
    const rule = (action, target) => ({ action, target });
    const box = await make({ networkPolicy: { egress: [rule("allow", "a.test")] } });
    assert.deepEqual(await box.getEgressPolicy(), {
      defaultAction: "deny",
      egress: [rule("allow", "a.test")],
    });
    await box.patchEgressRules([rule("allow", "b.test"), rule("deny", "a.test")]);
    await box.deleteEgressRules(["a.test", "unknown.test"]);
    assert.deepEqual((await box.getEgressPolicy()).egress, [rule("allow", "b.test")]);
    const wrong = await failure(() => box.patchEgressRules([rule("allow", "no name")]));
    assert.equal(wrong.statusCode, 400);
    const open = await make();
    assert.deepEqual(await open.getEgressPolicy(), { defaultAction: "allow", egress: [] });
    await open.patchEgressRules([rule("deny", "c.test")]);
    assert.deepEqual((await open.getEgressPolicy()).egress, [rule("deny", "c.test")]);
    for (const one of [box, open]) await remove(one);
  },

  async errorsCarryARequestId() {
    const manager = SandboxManager.create({ connectionConfig: config() });
    const missing = await failure(() => manager.getSandboxInfo("no-such-sandbox"));
    assert.equal(missing.statusCode, 404);
    assert.ok(missing.requestId && missing.error.code);
    await manager.close();
    const stranger = SandboxManager.create({ connectionConfig: config({ apiKey: "wrong" }) });
    const refused = await failure(() => stranger.listSandboxInfos());
    assert.equal(refused.statusCode, 401);
    assert.ok(refused.requestId);
    await stranger.close();
  },
};

const shared = await make();
let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run(shared);
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok ${name}\n${error.stack}`);
  }
}
await remove(shared);
process.exit(failed ? 1 : 0);
