// Small JavaScript projects with a failing test.
import { node, repository } from "./repository.ts";
import type { Trace } from "./trace.ts";

const family = "node repositories";
const follows = "SWE-bench: an issue about a small library, here in JavaScript, judged by hidden tests";
const test = "node test.js 2>&1 | tail -n 5";

export const nodeRepositories: readonly Trace[] = [
  repository({
    id: "js-query-string",
    family,
    follows,
    test,
    source: "query.js",
    files: {
      "query.js": "exports.parse = (text) => Object.fromEntries(text.split('&').map((one) => one.split('=')));\n",
      "test.js": "require('node:assert').deepEqual(require('./query').parse('?a=1&b=x%20y'), { a: '1', b: 'x y' });\n",
    },
    edits: [
      ["The question mark.", "query.js", "text.split('&')", "text.replace(/^[?]/, '').split('&')"],
      ["Escapes.", "query.js", "one.split('=')", "one.split('=').map(decodeURIComponent)"],
    ],
    hidden: node(
      "const { parse } = require('./query'); require('node:assert').deepEqual(parse('?k%26=v%3D&z=1'), { 'k&': 'v=', z: '1' });",
    ),
  }),
  repository({
    id: "js-debounce",
    family,
    test,
    source: "debounce.js",
    files: {
      "debounce.js":
        "module.exports = (run, ms) => {\n  let timer;\n  return () => {\n    timer = setTimeout(run, ms);\n  };\n};\n",
      "test.js":
        "const seen = []; const f = require('./debounce')((x) => seen.push(x), 20); f(1); f(2); setTimeout(() => require('node:assert').deepEqual(seen, [2]), 80);\n",
    },
    edits: [
      ["Arguments go on.", "debounce.js", "return () => {", "return (...args) => {"],
      ["They reach it.", "debounce.js", "setTimeout(run, ms)", "setTimeout(run, ms, ...args)"],
      ["Only the last.", "debounce.js", "    timer =", "    clearTimeout(timer);\n    timer ="],
    ],
    hidden: node(
      "const seen = []; const f = require('./debounce')((...x) => seen.push(x), 20); f(1, 2); f(3, 4); setTimeout(() => require('node:assert').deepEqual(seen, [[3, 4]]), 100);",
    ),
  }),
  repository({
    id: "js-semver",
    family,
    follows,
    test,
    source: "semver.js",
    files: {
      "semver.js":
        "exports.compare = (a, b) => {\n  const [x, y] = [a.split('.'), b.split('.')];\n  for (let i = 0; i < 2; i++) {\n    if (x[i] !== y[i]) return x[i] < y[i] ? -1 : 1;\n  }\n  return 0;\n};\n",
      "test.js": "require('node:assert').equal(require('./semver').compare('1.10.0', '1.9.3'), 1);\n",
    },
    edits: [
      [
        "Numbers, not texts.",
        "semver.js",
        "[a.split('.'), b.split('.')]",
        "[a, b].map((one) => one.split('.').map(Number))",
      ],
      ["All three parts.", "semver.js", "i < 2", "i < 3"],
    ],
    hidden: node(
      "const { compare } = require('./semver'); const { equal } = require('node:assert'); equal(compare('1.10.0', '1.9.0'), 1); equal(compare('1.1.1', '1.1.2'), -1); equal(compare('2.0.0', '2.0.0'), 0);",
    ),
  }),
  repository({
    id: "js-event-emitter",
    family,
    test,
    source: "emitter.js",
    files: {
      "emitter.js":
        "module.exports = class Emitter {\n  #all = {};\n  on(name, run) { this.#all[name] = [run]; return this; }\n  off(name, run) { this.#all[name] = this.#all[name].filter((one) => one === run); }\n  emit(name, ...args) { for (const run of this.#all[name]) run(...args); }\n};\n",
      "test.js":
        "const e = new (require('./emitter'))(); let n = 0; const f = () => n++; e.on('a', f).on('a', () => n += 10); e.emit('a'); e.off('a', f); e.emit('a'); require('node:assert').equal(n, 21);\n",
    },
    edits: [
      ["More than one listener.", "emitter.js", "this.#all[name] = [run];", "(this.#all[name] ??= []).push(run);"],
      ["The others stay.", "emitter.js", "one === run", "one !== run"],
      ["Nobody may listen.", "emitter.js", "of this.#all[name])", "of this.#all[name] ?? [])"],
    ],
    hidden: node(
      "const e = new (require('./emitter'))(); let n = 0; const f = () => n++; e.emit('z'); e.on('a', f).on('a', () => n += 10); e.emit('a'); e.off('a', f); e.emit('a'); require('node:assert').equal(n, 21);",
    ),
  }),
  repository({
    id: "js-deep-equal",
    family,
    test,
    source: "equal.js",
    files: {
      "equal.js":
        "module.exports = function equal(a, b) {\n  if (a === b) return true;\n  if (typeof a !== 'object') return false;\n  return Object.keys(a).every((key) => a[key] === b[key]);\n};\n",
      "test.js":
        "const equal = require('./equal'); const { ok } = require('node:assert'); ok(equal({ a: { b: 1 } }, { a: { b: 1 } })); ok(!equal({}, { a: 1 }));\n",
    },
    edits: [
      ["Deep.", "equal.js", "a[key] === b[key]", "equal(a[key], b[key])"],
      [
        "Nothing is not an object.",
        "equal.js",
        "if (typeof a !== 'object')",
        "if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)",
      ],
      [
        "As many keys.",
        "equal.js",
        "  return Object.keys(a)",
        "  if (Object.keys(a).length !== Object.keys(b).length) return false;\n  return Object.keys(a)",
      ],
    ],
    hidden: node(
      "const equal = require('./equal'); const { ok } = require('node:assert'); ok(equal({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })); ok(!equal({ a: null }, { a: {} })); ok(!equal({}, { a: 1 }));",
    ),
  }),
  repository({
    id: "js-config-merge",
    family,
    follows,
    test,
    source: "lib/merge.js",
    files: {
      "lib/merge.js":
        "module.exports = (base, more) => {\n  for (const key in more) base[key] = more[key];\n  return base;\n};\n",
      "index.js":
        "const merge = require('./lib/merge.js');\nexports.load = (user) => merge({ port: 80, tls: { on: false, cert: 'none' } }, user);\n",
      "test.js":
        "require('node:assert').deepEqual(require('./index.js').load({ tls: { on: true } }), { port: 80, tls: { on: true, cert: 'none' } });\n",
    },
    edits: [
      [
        "The base is nobody's to change.",
        "lib/merge.js",
        "  for (const key in more) base[key] = more[key];\n  return base;",
        "  const out = { ...base };\n  for (const key in more) out[key] = more[key];\n  return out;",
      ],
      [
        "Deep.",
        "lib/merge.js",
        "module.exports = (base, more) => {",
        "const isPlain = (one) => typeof one === 'object' && one !== null && !Array.isArray(one);\nmodule.exports = function merge(base, more) {",
      ],
      [
        "Where both are objects.",
        "lib/merge.js",
        "out[key] = more[key];",
        "out[key] = isPlain(base[key]) && isPlain(more[key]) ? merge(base[key], more[key]) : more[key];",
      ],
    ],
    hidden: node(
      "const merge = require('./lib/merge.js'); const { deepEqual } = require('node:assert'); const base = { a: { b: 1, c: [1] } }; deepEqual(merge(base, { a: { c: [2] } }), { a: { b: 1, c: [2] } }); deepEqual(base, { a: { b: 1, c: [1] } });",
    ),
  }),
  repository({
    id: "js-csv-writer",
    family,
    test,
    source: "writer.js",
    files: {
      "writer.js":
        "const cell = (value) => String(value);\nexports.write = (rows) => rows.map((row) => row.map(cell).join(';')).join('\\n');\n",
      "test.js":
        "require('node:assert').equal(require('./writer').write([['a', 'b,c'], [1, null]]), 'a,\"b,c\"\\n1,\\n');\n",
    },
    edits: [
      ["Commas.", "writer.js", "join(';')", "join(',')"],
      [
        "Quotes where they are needed.",
        "writer.js",
        "=> String(value);",
        `=> {\n  const text = value === null ? '' : String(value);\n  return /[",\\n]/.test(text) ? \`"\${text.replaceAll('"', '""')}"\` : text;\n};`,
      ],
      ["Each line ends.", "writer.js", ".join('\\n');", `.map((line) => \`\${line}\\n\`).join('');`],
    ],
    hidden: node(
      "const { write } = require('./writer'); require('node:assert').equal(write([['x\"y', null], ['a,b', 2]]), '\"x\"\"y\",\\n\"a,b\",2\\n');",
    ),
  }),
];
