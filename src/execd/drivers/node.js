// The driver for JavaScript and TypeScript: cells are evaluated by V8 in the mode of its own console (let, const and
// class may be declared again, await stands at top level), one after the other in the main context of one node.
// An expression: the function that execd's row calls with node's require and its import.
(function (require, importModule) {
'use strict';
const fs = require('fs'), net = require('net'), path = require('path'), url = require('url'), vm = require('vm');
const util = require('util'), Module = require('module');
const { inspect } = util;
const quote = JSON.stringify, parse = JSON.parse;
const { setImmediate, Buffer, String } = globalThis;
const own = (method) => Function.prototype.call.bind(method);
const replace = own(String.prototype.replace), indexOf = own(String.prototype.indexOf);
const slice = own(String.prototype.slice);
const tick = process._tickCallback, emitWarning = process.emitWarning;
const channel = Number(process.env.OPENSANDBOX_DRIVER_FD);
const typescript = process.argv.pop() === 'typescript';
const suffix = typescript ? '.ts' : '.js';
const driver = 'opensandbox-driver';
const pause = new Int32Array(new SharedArrayBuffer(4));
const shown = Symbol.for('Jupyter.display');
const maps = new Map();
const pid = process.pid;
delete process.env.OPENSANDBOX_DRIVER_FD;

// Node warns that what we use is experimental; that is nothing to tell the client's user.
function quietly(f) {
	process.emitWarning = () => {};
	try {
		return f();
	} finally {
		process.emitWarning = emitWarning;
	}
}

let inspector = null, current = null, guarded = null, taken;

// ---- the channel -------------------------------------------------------------------------------------------------

// Written at once and in full, so that nothing is lost when user code ends the process.
function send(line) {
	if (process.pid !== pid) return;
	let bytes = Buffer.from(line + '\n');
	while (bytes.length) {
		try {
			bytes = bytes.subarray(fs.writeSync(channel, bytes));
		} catch (e) {
			if (e.code !== 'EAGAIN') process.reallyExit(1);
			Atomics.wait(pause, 0, 0, 1);
		}
	}
}

// A string that every JSON reader accepts: no half characters, no NUL.
function text(s) {
	const odd = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\0/g;
	return quote(replace(String(s), odd, '\ufffd'));
}

// Members are written one by one: a toJSON that user code has put on a prototype has no say here.
function bundle(data) {
	let members = '';
	for (const mime in data) members += (members ? ',' : '') + text(mime) + ':' + text(data[mime]);
	return '{' + members + '}';
}

function lines(list) {
	let all = '';
	for (let i = 0; i < list.length; i++) all += (i ? ',' : '') + text(list[i]);
	return '[' + all + ']';
}

// ---- values and errors -------------------------------------------------------------------------------------------

function describe(value) {
	const data = { __proto__: null };
	if (value !== null && typeof value === 'object' && !util.types.isProxy(value) && typeof value[shown] === 'function') {
		const own = value[shown]();
		for (const mime in own) data[mime] = typeof own[mime] === 'string' ? own[mime] : quote(own[mime]) || '';
	}
	if (data['text/plain'] === undefined) data['text/plain'] = inspect(value);
	return data;
}

function original(name, line, column) {
	const entry = maps.get(name) && maps.get(name).findEntry(line - 1, column - 1);
	return entry && entry.originalLine !== undefined
		? `${name}:${entry.originalLine + 1}:${entry.originalColumn + 1}` : `${name}:${line}:${column}`;
}

// Frames below a cell are the driver's own and say nothing.
function clean(stack) {
	const kept = [];
	let below = false;
	for (const line of stack.split('\n')) {
		const frame = /^\s+at /.test(line);
		below = frame && (below || line.includes('(node:inspector:') || line.includes(driver));
		if (!below)
			kept.push(line.replace(/(cell-\d+\.[jt]s):(\d+):(\d+)/g, (_, name, l, c) => original(name, +l, +c)));
	}
	return kept;
}

function pointed(run, line, column) {
	const all = run.code.split('\n');
	line = Math.min(line, all.length - 1);
	return [`${run.name}:${line + 1}`, all[line], ' '.repeat(Math.min(column, all[line].length)) + '^'];
}

function failure(run, error, details) {
	try {
		return explain(run, error, details);
	} catch {
		return { name: 'Error', value: 'an error that cannot be shown', trace: ['Error'] };
	}
}

function explain(run, error, details) {
	if (!util.types.isNativeError(error) && !(error instanceof Error))
		return { name: 'Uncaught', value: inspect(error), trace: ['Uncaught ' + inspect(error)] };
	const stack = clean(inspect(error));
	if (error.name === 'SyntaxError' && details && !stack.some((line) => line.includes(run.name)))
		stack.unshift(...pointed(run, details.lineNumber, details.columnNumber));
	return { name: String(error.name), value: String(error.message), trace: stack };
}

function interrupted() {
	return { name: 'KeyboardInterrupt', value: 'the run was interrupted', trace: ['KeyboardInterrupt'] };
}

// ---- TypeScript --------------------------------------------------------------------------------------------------

let strip = null;

function stripWithNode(run) {
	try {
		return Module.stripTypeScriptTypes(run.code, { mode: 'strip' });
	} catch (e) {
		if (e.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') throw placed(run, e);
		return Module.stripTypeScriptTypes(run.code, { mode: 'transform' });
	}
}

// Node says ":line", lines up to that one, and a caret below it.
function placed(run, error) {
	const line = /^.*:(\d+)\n/.exec(error.stack), caret = /^( *)\^/m.exec(error.stack);
	return line ? { name: 'SyntaxError', value: error.message,
		trace: [...pointed(run, line[1] - 1, caret ? caret[1].length : 0), `SyntaxError: ${error.message}`] } : error;
}

function stripWithPackage(file) {
	return (run) => {
		const ts = require(file), newer = parseFloat(ts.versionMajorMinor) >= 5;
		const keep = newer ? { verbatimModuleSyntax: true } : { isolatedModules: true, preserveValueImports: true };
		const out = ts.transpileModule(run.code, {
			fileName: run.name, reportDiagnostics: true,
			compilerOptions: {
				target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, sourceMap: true,
				experimentalDecorators: true, ...keep,
			},
		});
		const wrong = out.diagnostics.find((d) => d.file && d.category === ts.DiagnosticCategory.Error);
		if (wrong) {
			const at = wrong.file.getLineAndCharacterOfPosition(wrong.start);
			const message = ts.flattenDiagnosticMessageText(wrong.messageText, '\n');
			throw { name: 'SyntaxError', value: message,
				trace: [...pointed(run, at.line, at.character), `SyntaxError: ${message}`] };
		}
		if (maps.size === 100) maps.delete(maps.keys().next().value);
		maps.set(run.name, new Module.SourceMap(parse(out.sourceMapText)));
		return out.outputText.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '');
	};
}

function findStripper() {
	const beside = path.join(path.dirname(process.execPath), '..', 'lib', 'node_modules');
	const places = [process.cwd(), beside, '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'];
	if (Module.stripTypeScriptTypes) return (run) => quietly(() => stripWithNode(run));
	for (const place of places) {
		try {
			return stripWithPackage(require.resolve(place.endsWith('/nodejs') ? `${place}/typescript` : 'typescript',
				{ paths: [place] }));
		} catch {
			// Not there: the next place.
		}
	}
	return null;
}

// ---- import and export -------------------------------------------------------------------------------------------

function bindings(clause, from) {
	const names = clause.match(/^\s*([\w$]+)?\s*,?\s*(?:\*\s*as\s+([\w$]+)|(\{[^}]*\}))?\s*$/);
	if (!names) return null;
	const [, one, all, some] = names;
	let out = all ? `const ${all} = ${from}` : '';
	const picked = some ? some.slice(1, -1).replace(/\bas\b/g, ':') : '';
	if (one) out += (out && '; ') + `const {default: ${one}${some ? ', ' + picked : ''}} = ${from}`;
	else if (some) out = `const {${picked}} = ${from}`;
	return out;
}

const statics = [
	[/import\s*(?:([\w$*{][^'"`;()]*?)\s*\bfrom\s*)?(['"])((?:(?!\2).)*)\2(?:\s*(?:with|assert)\s*(\{[^}]*\}))?/y,
		(m) => {
			const from = `await __cell.import(${m[2]}${m[3]}${m[2]}${m[4] ? `, {with: ${m[4]}}` : ''})`;
			return m[1] ? bindings(m[1], from) : `void ${from}`;
		}],
	[/export\s*(?:\{[^}]*\}|\*(?:\s*as\s+[\w$]+)?)\s*from\s*(['"])((?:(?!\1).)*)\1/y,
		(m) => `void await __cell.import(${m[1]}${m[2]}${m[1]})`],
	[/export\s*\{[^}]*\}/y, (m) => m[0].replace(/[^\n]/g, ' ')],
	[/export\s+(?:default\b)?/y, (m) => m[0].replace(/[^\n]/g, ' ')],
];

const word = /[\w$\u0080-\uffff]+/y;
const literal = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"|\/\/.*|\/\*[^]*?\*\//y;
const regexp = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y;
const template = /(?:[^`\\$]|\\[^]|\$(?!\{))*/y;
const before = /^(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield|instanceof|[^\w$)\]'"`]|)$/;

function at(pattern, source, i) {
	pattern.lastIndex = i;
	return pattern.exec(source);
}

// What stands at `i`, if it is an import or export: [its length, what it becomes].
function moduleSyntax(source, i, name, depth, last) {
	const next = source.slice(i + name.length).match(/^\s*(.?)/)[1];
	if (last === '.' || next === ':' || next === '=') return null;
	if (name === 'import' && (next === '(' || next === '.')) {
		const meta = at(/import\s*\.\s*meta\b/y, source, i);
		return next === '(' ? [name.length, '__cell.import'] : meta && [meta[0].length, '__cell.meta'];
	}
	for (const [pattern, become] of depth === 0 ? statics : []) {
		const m = at(pattern, source, i), now = m && become(m);
		if (now && m[0].startsWith(name)) // lines stay where they are
			return [m[0].length, now + '\n'.repeat(m[0].split('\n').length - now.split('\n').length)];
	}
	return null;
}

// Cells are no modules: imports become awaited ones, exports lose the word. Literals and comments are passed over.
function asScript(source) {
	if (!/\b(?:import|export)\b/.test(source)) return source;
	const open = [];
	let out = '', last = '', depth = 0;
	for (let i = 0; i < source.length;) {
		const c = source[i];
		let m, now;
		if (c === '`' || (c === '}' && open[open.length - 1] === depth)) {
			if (c === '}') open.pop();
			m = at(template, source, i + 1);
			now = c + m[0];
			if (source[i + now.length] === '$') {
				now += '${';
				open.push(depth);
				last = '{';
			} else {
				now += '`';
				last = '`';
			}
		} else if ((m = at(literal, source, i))) {
			now = m[0];
			if (c !== '/') last = c;
		} else if (c === '/' && before.test(last) && (m = at(regexp, source, i))) {
			now = last = m[0];
		} else if ((m = at(word, source, i))) {
			const found = /^(?:im|ex)port$/.test(m[0]) && moduleSyntax(source, i, m[0], depth + open.length, last);
			last = m[0];
			if (found) {
				out += found[1];
				i += found[0];
				continue;
			}
			now = m[0];
		} else {
			if ('([{'.includes(c)) depth++;
			if (')]}'.includes(c)) depth--;
			if (!/\s/.test(c)) last = c;
			now = c;
		}
		out += now;
		i += now.length;
	}
	return out;
}

// What stands in braces alone is an object if it can be one, as in node's own console.
function asExpression(source) {
	if (!/^\s*\{[^]*[^;\s]\s*$/.test(source)) return source;
	try {
		new vm.Script(`(${source}\n)`);
		return `(${source}\n)`;
	} catch {
		return source;
	}
}

// ---- runs --------------------------------------------------------------------------------------------------------

// SIGINT ends what runs in here, an endless loop too.
function guard(f) {
	const outer = guarded;
	guarded = f;
	try {
		vm.runInThisContext('__cell.go()', { breakOnSigint: true, filename: driver });
		return true;
	} catch (e) {
		if (e && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') return false;
		throw e;
	} finally {
		guarded = outer;
	}
}

// The inspector makes JSON of what it is asked: a toJSON on every object would be in the way.
function post(method, params, callback) {
	delete Object.prototype.toJSON;
	inspector.post(method, params, callback);
}

function valueOf(remote) {
	taken = undefined;
	if (!remote.objectId)
		return 'unserializableValue' in remote ? { [inspect.custom]: () => remote.unserializableValue } : remote.value;
	post('Runtime.callFunctionOn', {
		objectId: remote.objectId, functionDeclaration: "function(){'use strict';__cell.take(this)}", silent: true,
	});
	return taken;
}

// The first outcome counts; it is sent when what it has left behind (a rejected promise, say) has had its turn.
function settle(run, outcome) {
	if (run !== current) return;
	if (!run.outcome) {
		run.outcome = outcome;
		setImmediate(() => finishOrEnd(run));
	} else if (outcome.name && !run.outcome.name) {
		run.outcome = outcome;
	}
}

function finish(run) {
	const { name, value, trace, data } = run.outcome;
	current = null;
	post('Runtime.releaseObjectGroup', { objectGroup: 'run' });
	if (name !== undefined)
		send(`{"ev":"error","id":${run.quoted},"ename":${text(name)},"evalue":${text(value)},"traceback":${lines(trace)}}`);
	else if (data)
		send(`{"ev":"result","id":${run.quoted},"count":${run.count},"data":${bundle(data)}}`);
	send(`{"ev":"done","id":${run.quoted}}`);
}

const finishOrEnd = orEnd(finish);

function judge(run, error, answer) {
	if (run !== current || run.outcome) return;
	if (error)
		return settle(run, /collected/.test(error.message)
			? { name: 'Error', value: 'the awaited promise can never be settled', trace: ['Error'] }
			: interrupted());
	const details = answer.exceptionDetails;
	let outcome = interrupted();
	const look = () => {
		try {
			const value = valueOf(details && details.exception ? details.exception : answer.result);
			outcome = details ? failure(run, value, details) : value === undefined ? {} : { data: describe(value) };
		} catch (e) {
			outcome = failure(run, e);
		}
	};
	if (guarded) look();
	else guard(look);
	settle(run, outcome);
}

function start(run) {
	let source;
	try {
		source = asExpression(asScript(strip ? strip(run) : run.code));
	} catch (e) {
		return settle(run, e instanceof Error ? failure(run, e) : e);
	}
	const whole = guard(() => {
		post('Runtime.evaluate', {
			expression: `${source}\n//# sourceURL=${run.name}`, objectGroup: 'run', replMode: true,
			awaitPromise: true, silent: true, disableBreaks: true,
		}, (error, answer) => judge(run, error, answer));
		if (tick) tick.call(process);
	});
	if (!whole) settle(run, interrupted());
}

function take(line) {
	const message = parse(line);
	if (message.op === 'exit') process.reallyExit(0);
	if (message.op !== 'run') return;
	current = {
		id: message.id, quoted: text(message.id), code: message.code, count: Number(message.count) || 0,
		name: `cell-${Number(message.count) || 0}${suffix}`, outcome: null,
	};
	start(current);
}

function stray(error) {
	if (current) settle(current, failure(current, error));
	else process.stderr.write(`Uncaught ${clean(inspect(error)).join('\n')}\n`);
}

function display(value) {
	if (current) send(`{"ev":"display","id":${current.quoted},"data":${bundle(describe(value))}}`);
}

function hidden(name, value) {
	const ours = name !== 'display';
	Object.defineProperty(globalThis, name, { value, enumerable: false, writable: !ours, configurable: !ours });
}

// A driver that user code has broken must not look like a run that takes long: execd starts another.
function orEnd(f) {
	return (argument) => {
		try {
			f(argument);
		} catch {
			process.reallyExit(1);
		}
	};
}

function listen() {
	const socket = new net.Socket({ fd: channel, readable: true, writable: false });
	const decoder = new (require('string_decoder').StringDecoder)('utf8');
	const write = own(decoder.write);
	let rest = '';
	socket.on('data', orEnd((chunk) => {
		let end;
		rest += write(decoder, chunk);
		while ((end = indexOf(rest, '\n')) >= 0) {
			const line = slice(rest, 0, end);
			rest = slice(rest, end + 1);
			take(line);
		}
	}));
	socket.on('close', () => process.reallyExit(0));
	socket.on('error', () => process.reallyExit(1));
}

function begin() {
	if (parseInt(process.versions.node, 10) < 18)
		throw new Error(`node ${process.version} is too old: 18 or newer is needed`);
	try {
		inspector = new (require('inspector').Session)();
		inspector.connect();
	} catch {
		throw new Error('this node was built without its inspector, which the code interpreter needs');
	}
	// What is printed is out before the next message, however slowly it is read.
	for (const stream of [process.stdout, process.stderr])
		if (stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
	strip = typescript ? findStripper() : null;
	if (typescript && !strip)
		throw new Error('TypeScript needs node 22.13 or newer, or the package "typescript"'
			+ ' (npm install -g typescript; on Debian: apt-get install node-typescript)');
	hidden('__cell', Object.freeze({
		__proto__: null,
		go: () => guarded && guarded(),
		take: (value) => { taken = value; },
		import: importModule,
		get meta() {
			const filename = path.join(process.cwd(), 'cell' + suffix);
			return { url: url.pathToFileURL(filename).href, filename, dirname: process.cwd() };
		},
	}));
	hidden('display', display);
	process.on('SIGINT', () => current && settle(current, interrupted()));
	process.on('uncaughtException', stray);
	process.on('unhandledRejection', stray);
}

try {
	begin();
	listen();
	send(`{"ev":"ready","version":${text(process.versions.node)}}`);
} catch (e) {
	send(`{"ev":"failed","message":${text(e.message)}}`);
	process.reallyExit(1);
}
})
