// Small Python projects with a failing test.
import { python, repository } from "./repository.ts";
import type { Trace } from "./trace.ts";

const family = "python repositories";
const follows = "SWE-bench: an issue about a small Python library, judged by tests that the agent does not see";
const test = "PYTHONDONTWRITEBYTECODE=1 python3 -m unittest -q 2>&1 | tail -n 5";
const unittest = (name: string, body: string): string =>
  `import unittest\nfrom ${name} import *\nclass T(unittest.TestCase):\n    def test(self):\n        ${body}\n`;

export const pythonRepositories: readonly Trace[] = [
  repository({
    id: "py-duration",
    family,
    follows,
    test,
    source: "duration.py",
    files: {
      "duration.py":
        "UNITS = {'s': 1, 'm': 60, 'h': 360}\n\ndef parse(text):\n    total, number = 0, ''\n    for c in text:\n        if c.isdigit():\n            number += c\n        else:\n            total = int(number) * UNITS[c]\n            number = ''\n    return total\n",
      "test_duration.py": unittest("duration", "self.assertEqual(parse('1h30m'), 5400)"),
    },
    edits: [
      ["An hour has 3600 seconds.", "duration.py", "'h': 360}", "'h': 3600}"],
      ["The parts add up.", "duration.py", "total = int(number)", "total += int(number)"],
    ],
    hidden: python("from duration import parse\nassert parse('2h') == 7200\nassert parse('1h1m1s') == 3661"),
  }),
  repository({
    id: "py-lru",
    family,
    test,
    source: "lru.py",
    files: {
      "lru.py":
        "class Lru:\n    def __init__(self, size):\n        self.size, self.items = size, {}\n\n    def get(self, key):\n        return self.items.get(key)\n\n    def put(self, key, value):\n        self.items[key] = value\n        if len(self.items) > self.size:\n            self.items.popitem()\n",
      "test_lru.py": unittest(
        "lru",
        "c = Lru(2); c.put(1, 1); c.put(2, 2); c.get(1); c.put(3, 3); self.assertEqual(c.get(1), 1)",
      ),
    },
    edits: [
      [
        "A look makes it the newest.",
        "lru.py",
        "        return self.items.get(key)",
        "        if key not in self.items:\n            return None\n        self.items[key] = self.items.pop(key)\n        return self.items[key]",
      ],
      [
        "So does a change.",
        "lru.py",
        "        self.items[key] = value",
        "        self.items.pop(key, None)\n        self.items[key] = value",
      ],
      ["The oldest goes.", "lru.py", "self.items.popitem()", "self.items.pop(next(iter(self.items)))"],
    ],
    hidden: python(
      "from lru import Lru\nc = Lru(2)\nc.put(1, 1); c.put(2, 2); c.put(1, 9); c.put(3, 3)\nassert c.get(2) is None and c.get(1) == 9\nc.put(4, 4)\nassert c.get(3) is None and c.get(1) == 9 and c.get(4) == 4",
    ),
  }),
  repository({
    id: "py-csv-quotes",
    family,
    follows,
    test,
    source: "rows.py",
    files: {
      "rows.py":
        "def split(line):\n    cells, cell, quoted = [], '', False\n    for c in line:\n        if c == '\"':\n            quoted = not quoted\n        elif c == ',':\n            cells.append(cell)\n            cell = ''\n        else:\n            cell += c\n    return cells\n",
      "test_rows.py": unittest("rows", "self.assertEqual(split('a,\"b,c\",d'), ['a', 'b,c', 'd'])"),
    },
    edits: [
      ["A comma in quotes is text.", "rows.py", "elif c == ',':", "elif c == ',' and not quoted:"],
      ["The last cell counts.", "rows.py", "    return cells", "    cells.append(cell)\n    return cells"],
    ],
    hidden: python(
      "from rows import split\nassert split('a,\"b,c\"') == ['a', 'b,c']\nassert split('') == ['']\nassert split('x,') == ['x', '']",
    ),
  }),
  repository({
    id: "py-interval-merge",
    family,
    test,
    source: "spans.py",
    files: {
      "spans.py":
        "def merge(spans):\n    out = []\n    for start, end in spans:\n        if out and start < out[-1][1]:\n            out[-1] = (out[-1][0], end)\n        else:\n            out.append((start, end))\n    return out\n",
      "test_spans.py": unittest("spans", "self.assertEqual(merge([(5, 8), (1, 6)]), [(1, 8)])"),
    },
    edits: [
      ["In order.", "spans.py", "in spans:", "in sorted(spans):"],
      ["Neighbours touch.", "spans.py", "start < out", "start <= out"],
      ["The longer end stays.", "spans.py", "(out[-1][0], end)", "(out[-1][0], max(out[-1][1], end))"],
    ],
    hidden: python(
      "from spans import merge\nassert merge([(5, 8), (1, 6)]) == [(1, 8)]\nassert merge([(1, 2), (2, 3)]) == [(1, 3)]\nassert merge([(1, 9), (2, 3)]) == [(1, 9)]",
    ),
  }),
  repository({
    id: "py-template",
    family,
    follows,
    test,
    source: "tiny/render.py",
    files: {
      "tiny/__init__.py": "from .render import render\n",
      "tiny/render.py":
        "import re\n\ndef render(text, **values):\n    def one(match):\n        return values[match.group(1)]\n    return re.sub(r'{(\\w)}', one, text)\n",
      "test_render.py": unittest("tiny", "self.assertEqual(render('hello {name}', name='ada'), 'hello ada')"),
    },
    edits: [
      ["Names have more than one letter.", "tiny/render.py", "(\\w)", "(\\w+)"],
      [
        "Values may be numbers.",
        "tiny/render.py",
        "return values[match.group(1)]",
        "return str(values[match.group(1)])",
      ],
      [
        "What has no value stays.",
        "tiny/render.py",
        "    def one(match):",
        "    def one(match):\n        if match.group(1) not in values:\n            return match.group(0)",
      ],
    ],
    hidden: python(
      "from tiny import render\nassert render('{a} {bc}', a=1, bc='x') == '1 x'\nassert render('{no}') == '{no}'",
    ),
  }),
  repository({
    id: "py-topological",
    family,
    test,
    source: "order.py",
    files: {
      "order.py":
        "def order(needs):\n    done, out = set(), []\n    def visit(name):\n        if name in done:\n            return\n        for other in needs.get(name, []):\n            visit(other)\n        out.append(name)\n    for name in needs:\n        visit(name)\n    return out\n",
      "test_order.py": unittest("order", "self.assertEqual(order({'b': ['a'], 'c': ['a', 'b']}), ['a', 'b', 'c'])"),
    },
    edits: [
      ["Each once.", "order.py", "        out.append(name)", "        done.add(name)\n        out.append(name)"],
      [
        "Circles are told.",
        "order.py",
        "    def visit(name):\n        if name in done:\n            return",
        "    path = []\n    def visit(name):\n        if name in done:\n            return\n        if name in path:\n            raise ValueError('circle')\n        path.append(name)",
      ],
      ["The way back.", "order.py", "        done.add(name)", "        path.pop()\n        done.add(name)"],
    ],
    hidden: python(
      "from order import order\nassert order({'b': ['a'], 'c': ['a', 'b']}) == ['a', 'b', 'c']\ntry:\n    order({'a': ['b'], 'b': ['a']})\n    raise SystemExit(1)\nexcept ValueError as e:\n    assert str(e) == 'circle'\nassert order({'x': ['y', 'z'], 'w': ['y', 'x']}) == ['y', 'z', 'x', 'w']\nimport inspect\nassert 'path.pop()' in inspect.getsource(order)",
    ),
  }),
  repository({
    id: "py-money",
    family,
    test,
    source: "money.py",
    files: {
      "money.py":
        "def cents(text):\n    return int(float(text) * 100)\n\ndef shown(cents):\n    return '%d.%d' % (cents / 100, cents % 100)\n",
      "test_money.py": unittest("money", "self.assertEqual(shown(cents('19.99')), '19.99')"),
    },
    edits: [
      [
        "No floats.",
        "money.py",
        "    return int(float(text) * 100)",
        "    whole, _, rest = text.partition('.')\n    return int(whole) * 100 + int((rest + '00')[:2])",
      ],
      ["Two digits.", "money.py", "'%d.%d' % (cents / 100, cents % 100)", "'%d.%02d' % divmod(cents, 100)"],
    ],
    hidden: python(
      "from money import cents, shown\nassert cents('1.15') == 115 and cents('3') == 300\nassert shown(405) == '4.05'",
    ),
  }),
];
