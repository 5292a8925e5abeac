// Small C projects with a failing test.
import { compiled, repository } from "./repository.ts";
import type { Trace } from "./trace.ts";

const family = "c repositories";
const test = "cc -I. -o /tmp/t-$$ *.c -lm 2>&1 | tail -n 3; /tmp/t-$$; echo status $?; rm -f /tmp/t-$$";
const assertion = (include: string, body: string): string =>
  `#include <assert.h>\n#include <string.h>\n#include <stdlib.h>\n#include "${include}"\nint main(void) { ${body} return 0; }`;

export const cRepositories: readonly Trace[] = [
  repository({
    id: "c-trim",
    family,
    follows: "SWE-bench: an issue about a small library, here in C, judged by hidden tests",
    test,
    source: "trim.c",
    files: {
      "trim.h": "char *trim(char *text);\n",
      "trim.c":
        "#include <string.h>\n#include <ctype.h>\n#include \"trim.h\"\nchar *trim(char *text) {\n  while (*text == ' ') text++;\n  char *end = text + strlen(text);\n  while (isspace((unsigned char)*end)) end--;\n  *end = 0;\n  return text;\n}\n",
      "test.c": assertion("trim.h", 'char a[] = "  hi \\n"; assert(!strcmp(trim(a), "hi"));'),
    },
    edits: [
      [
        "All white space in front.",
        "trim.c",
        "while (*text == ' ') text++;",
        "while (isspace((unsigned char)*text)) text++;",
      ],
      [
        "And behind.",
        "trim.c",
        "while (isspace((unsigned char)*end)) end--;",
        "while (end > text && isspace((unsigned char)end[-1])) end--;",
      ],
    ],
    hidden: compiled(
      "trim.c",
      assertion(
        "trim.h",
        'char a[] = "\\t hi \\n"; assert(!strcmp(trim(a), "hi")); char b[] = "   "; assert(!strcmp(trim(b), "")); char c[] = "\\tx"; assert(!strcmp(trim(c), "x"));',
      ),
    ),
  }),
  repository({
    id: "c-hex",
    family,
    test,
    source: "hex.c",
    files: {
      "hex.h": "int unhex(const char *text, unsigned char *out);\n",
      "hex.c":
        "#include \"hex.h\"\nstatic int digit(char c) {\n  if (c >= '0' && c <= '9') return c - '0';\n  if (c >= 'a' && c <= 'f') return c - 'a';\n  return -1;\n}\nint unhex(const char *text, unsigned char *out) {\n  int n = 0;\n  for (; *text; text += 2) out[n++] = digit(text[0]) * 16 + digit(text[1]);\n  return n;\n}\n",
      "test.c": assertion("hex.h", 'unsigned char b[4]; assert(unhex("ff0A", b) == 2 && b[0] == 255 && b[1] == 10);'),
    },
    edits: [
      ["a is ten.", "hex.c", "return c - 'a';", "return c - 'a' + 10;"],
      [
        "Large letters.",
        "hex.c",
        "  return -1;\n}\nint",
        "  if (c >= 'A' && c <= 'F') return c - 'A' + 10;\n  return -1;\n}\nint",
      ],
      [
        "What is none is told.",
        "hex.c",
        "  for (; *text; text += 2) out",
        "  for (; *text; text += 2)\n    if (digit(text[0]) < 0 || digit(text[1]) < 0) return -1;\n    else out",
      ],
    ],
    hidden: compiled(
      "hex.c",
      assertion(
        "hex.h",
        'unsigned char b[4]; assert(unhex("fFA0", b) == 2 && b[0] == 255 && b[1] == 160); assert(unhex("zz", b) == -1); assert(unhex("a", b) == -1);',
      ),
    ),
  }),
  repository({
    id: "c-ring",
    family,
    test,
    source: "ring.c",
    files: {
      "ring.h":
        "typedef struct { int items[4]; int head, count; } ring;\nint put(ring *r, int item);\nint take(ring *r, int *item);\n",
      "ring.c":
        '#include "ring.h"\nint put(ring *r, int item) {\n  if (r->count > 4) return 0;\n  r->items[(r->head + r->count) % 4] = item;\n  r->count++;\n  return 1;\n}\nint take(ring *r, int *item) {\n  if (r->count == 0) return 0;\n  *item = r->items[r->head];\n  r->head++;\n  r->count--;\n  return 1;\n}\n',
      "test.c": assertion(
        "ring.h",
        "ring r = {0}; int x; for (int i = 0; i < 9; i++) { assert(put(&r, i)); assert(take(&r, &x) && x == i); }",
      ),
    },
    edits: [
      ["Four fit.", "ring.c", "r->count > 4", "r->count >= 4"],
      ["It goes round.", "ring.c", "r->head++;", "r->head = (r->head + 1) % 4;"],
    ],
    hidden: compiled(
      "ring.c",
      assertion(
        "ring.h",
        "ring r = {0}; int x; for (int i = 0; i < 4; i++) assert(put(&r, i)); assert(!put(&r, 9)); for (int i = 0; i < 4; i++) { assert(take(&r, &x) && x == i); assert(put(&r, i + 4)); } assert(take(&r, &x) && x == 4 && r.head < 4);",
      ),
    ),
  }),
  repository({
    id: "c-average",
    family,
    test,
    source: "stats.c",
    files: {
      "stats.h": "double mean(const int *v, int n);\ndouble spread(const int *v, int n);\n",
      "stats.c":
        '#include <math.h>\n#include "stats.h"\ndouble mean(const int *v, int n) {\n  int sum = 0;\n  for (int i = 0; i < n; i++) sum += v[i];\n  return sum / n;\n}\ndouble spread(const int *v, int n) {\n  double m = mean(v, n), s = 0;\n  for (int i = 0; i < n; i++) s += v[i] - m;\n  return sqrt(s / n);\n}\n',
      "test.c": assertion(
        "stats.h",
        "int v[] = {1, 2, 4}; assert(mean(v, 3) > 2.3 && mean(v, 3) < 2.4); int w[] = {2, 4}; assert(spread(w, 2) == 1);",
      ),
    },
    edits: [
      ["No rounding.", "stats.c", "return sum / n;", "return (double)sum / n;"],
      ["No overflow.", "stats.c", "int sum = 0;", "long long sum = 0;"],
      ["Squares.", "stats.c", "s += v[i] - m;", "s += (v[i] - m) * (v[i] - m);"],
    ],
    hidden: compiled(
      "stats.c",
      assertion(
        "stats.h",
        "int v[] = {2000000000, 2000000001}; assert(mean(v, 2) == 2000000000.5); int w[] = {2, 4}; assert(spread(w, 2) == 1);",
      ),
    ),
  }),
  repository({
    id: "c-tokenizer",
    family,
    test,
    source: "token.c",
    files: {
      "token.h": "typedef struct { char kind; long value; } token;\nconst char *next(const char *at, token *out);\n",
      "token.c":
        "#include <ctype.h>\n#include \"token.h\"\nconst char *next(const char *at, token *out) {\n  if (isdigit((unsigned char)*at)) {\n    out->kind = 'n';\n    out->value = *at - '0';\n    return at + 1;\n  }\n  out->kind = *at;\n  return at + 1;\n}\n",
      "test.c": assertion(
        "token.h",
        "token t; const char *at = next(\" 42+1\", &t); assert(t.kind == 'n' && t.value == 42); at = next(at, &t); assert(t.kind == '+');",
      ),
    },
    edits: [
      [
        "White space is passed over.",
        "token.c",
        "  if (isdigit((unsigned char)*at)) {",
        "  while (isspace((unsigned char)*at)) at++;\n  if (isdigit((unsigned char)*at)) {",
      ],
      [
        "All digits.",
        "token.c",
        "    out->value = *at - '0';\n    return at + 1;\n",
        "    for (out->value = 0; isdigit((unsigned char)*at); at++) out->value = out->value * 10 + (*at - '0');\n    return at;\n",
      ],
      [
        "The end stays the end.",
        "token.c",
        "  out->kind = *at;\n  return at + 1;",
        "  out->kind = *at;\n  return *at == 0 ? at : at + 1;",
      ],
    ],
    hidden: compiled(
      "token.c",
      assertion(
        "token.h",
        'token t; const char *s = "  107 "; const char *at = next(s, &t); assert(t.value == 107); at = next(at, &t); assert(t.kind == 0); assert(next(at, &t) == at);',
      ),
    ),
  }),
  repository({
    id: "c-path-join",
    family,
    test,
    source: "path.c",
    files: {
      "path.h": "char *join(const char *a, const char *b);\n",
      "path.c":
        '#include <stdlib.h>\n#include <string.h>\n#include "path.h"\nchar *join(const char *a, const char *b) {\n  char *out = malloc(strlen(a) + strlen(b));\n  strcpy(out, a);\n  strcat(out, b);\n  return out;\n}\n',
      "test.c": assertion("path.h", 'assert(!strcmp(join("a", "b"), "a/b"));'),
    },
    edits: [
      [
        "Room for the slash and the end.",
        "path.c",
        "malloc(strlen(a) + strlen(b))",
        "calloc(strlen(a) + strlen(b) + 2, 1)",
      ],
      [
        "The slash, once.",
        "path.c",
        "  strcat(out, b);",
        "  size_t n = strlen(out);\n  if (n > 0 && out[n - 1] != '/') strcat(out, \"/\");\n  strcat(out, b);",
      ],
      [
        "What is absolute stays alone.",
        "path.c",
        "  strcpy(out, a);",
        "  if (*b != '/') strcpy(out, a);\n  else { strcpy(out, b); return out; }",
      ],
    ],
    hidden: `grep -q 'strlen(b) + 2' path.c && ${compiled("path.c", assertion("path.h", 'assert(!strcmp(join("a", "b"), "a/b")); assert(!strcmp(join("a/", "b"), "a/b")); assert(!strcmp(join("a", "/b"), "/b"));'))}`,
  }),
];
