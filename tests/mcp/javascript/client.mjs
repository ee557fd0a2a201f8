// The official client against opensandbox-mcp: `client.mjs stdio PROGRAM` or `client.mjs http URL`.
// Every tool is called; what goes in and what comes out is held against its schemas.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const from = async (name) => import(require.resolve(name));
const { Client } = await from("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await from("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = await from("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { LATEST_PROTOCOL_VERSION } = await from("@modelcontextprotocol/sdk/types.js");
const { default: Ajv } = await from("ajv/dist/2020.js");

const IMAGE = "opensandbox/code-interpreter:latest";
const OPTIONS = { timeout: 120000 };
const [kind, target] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: target, env: process.env, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "tests", version: "1" });
await client.connect(transport);
assert.equal(client.getServerVersion().name, "OpenSandbox Sandbox");
if (kind === "http") assert.equal(transport.protocolVersion, LATEST_PROTOCOL_VERSION);

const ajv = new Ajv({ strict: false });
const { tools } = await client.listTools();
const schemas = new Map(
  tools.map((t) => [t.name, { input: ajv.compile(t.inputSchema), output: ajv.compile(t.outputSchema) }]),
);
const called = new Set();

async function call(name, args) {
  const { input, output } = schemas.get(name);
  assert.ok(input(args), `${name}: ${ajv.errorsText(input.errors)}`);
  const result = await client.callTool({ name, arguments: args }, undefined, OPTIONS);
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  assert.ok(output(result.structuredContent), `${name}: ${ajv.errorsText(output.errors)}`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  called.add(name);
  console.log(`ok ${name}`);
  return result.structuredContent;
}

const { sandbox_id } = await call("sandbox_create", {
  image: IMAGE, timeout_seconds: 600, env: { A: "b" }, metadata: { by: kind }, entrypoint: null,
  resource: { cpu: "500m", memory: "512Mi" },
});
await call("sandbox_connect", { sandbox_id });
await call("sandbox_get_info", { sandbox_id });
await call("sandbox_list", { filter: { metadata: { by: kind }, page: 1 } });
await call("sandbox_list", {});
await call("sandbox_renew", { sandbox_id, timeout_seconds: 900.5 });
await call("sandbox_get_metrics", { sandbox_id });
await call("sandbox_healthcheck", { sandbox_id, connect_if_missing: true });
await call("sandbox_get_endpoint", { sandbox_id, port: 8080 });

const run = await call("command_run", { sandbox_id, command: "echo $A; exit 2", working_directory: null });
assert.equal(run.exit_code, 2);
assert.equal(run.logs.stdout[0].text, "b\n");
const background = await call("command_run", { sandbox_id, command: "echo hello; sleep 100000", background: true });
await call("command_status", { sandbox_id, execution_id: background.id });
await call("command_logs", { sandbox_id, execution_id: background.id, cursor: 0 });
await call("command_interrupt", { sandbox_id, execution_id: background.id });
const code = await call("code_run", { sandbox_id, code: "6 * 7" });
assert.equal(code.result[0].text, "42");
const failed = await call("code_run", { sandbox_id, code: "1 / 0", language: "python" });
assert.equal(failed.error.name, "ZeroDivisionError");

await call("file_create_directories", { sandbox_id, entries: [{ path: "/tmp/d" }, { path: "/tmp/e", mode: 700 }] });
await call("file_write", { sandbox_id, path: "/tmp/d/f", content: "one two" });
const replaced = await call("file_replace_contents", {
  sandbox_id, entries: [{ path: "/tmp/d/f", old_content: "two", new_content: "three" }] });
assert.equal(replaced.result[0].replaced_count, 1);
assert.equal((await call("file_read", { sandbox_id, path: "/tmp/d/f" })).content, "one three");
await call("file_search", { sandbox_id, path: "/tmp/d", pattern: "*" });
await call("file_list", { sandbox_id, path: "/tmp" });
await call("file_move", { sandbox_id, entries: [{ source: "/tmp/d/f", destination: "/tmp/e/f" }] });

const uri = `sandbox://${sandbox_id}/tmp/e/f`;
assert.equal((await client.readResource({ uri })).contents[0].text, "one three");
assert.ok((await client.listResources()).resources.some((r) => r.uri === `sandbox://${sandbox_id}/`));
assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
await call("file_delete", { sandbox_id, paths: ["/tmp/e/f"] });
await call("file_delete_directories", { sandbox_id, paths: ["/tmp/d", "/tmp/e"] });

const snapshot = await call("snapshot_create", { sandbox_id, name: `mcp-${kind}` });
await call("snapshot_list", { sandbox_id });
const restored = await call("snapshot_restore", { snapshot_id: snapshot.id });
await call("sandbox_kill", { sandbox_id: restored.sandbox_id });
await call("snapshot_delete", { snapshot_id: snapshot.id });

// Progress is told; a call that is given up is cancelled; the session goes on meanwhile.
const stop = new AbortController();
let begun;
const started = new Promise((resolve) => (begun = resolve));
const long = client.callTool({ name: "command_run", arguments: { sandbox_id, command: "sleep 100000" } }, undefined,
  { ...OPTIONS, signal: stop.signal, onprogress: begun });
assert.ok((await started).message);
await client.ping();
stop.abort("enough");
await assert.rejects(long);
await client.ping();

const wrong = await client.callTool({ name: "command_run", arguments: { sandbox_id } });
assert.ok(wrong.isError && /command is missing/.test(wrong.content[0].text));
await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), /no_such_tool/);
await call("sandbox_kill", { sandbox_id });
assert.deepEqual([...called].sort(), tools.map((t) => t.name).sort());
if (kind === "http") await transport.terminateSession();
await client.close();
console.log(`ok all ${called.size} tools over ${kind}`);
process.exit(0);
