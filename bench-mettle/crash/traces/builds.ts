// Builds in several steps, whose state is what was generated.
import { act, edit, expects, look, type Trace, write } from "./trace.ts";

const shell = { family: "builds", kind: "shell" } as const;

const makefile = `CFLAGS += -O1
prog: main.o table.o
\t$(CC) -o $@ $^
table.c: gen.py
\tpython3 gen.py > $@
%.o: %.c
\t$(CC) $(CFLAGS) -c -o $@ $<
`;

export const builds: readonly Trace[] = [
  {
    id: "build-generated-table",
    ...shell,
    follows: "Terminal-Bench: repair a C build whose sources are generated",
    files: {
      Makefile: makefile,
      "gen.py": `print("const int table[4] = {%s};" % ",".join(str(i * i) for i in range(4)))\n`,
      "main.c": `#include <stdio.h>\nextern const int table[4];\nint main(void) { int s = 0; for (int i = 0; i <= 4; i++) s += table[i]; printf("%d\\n", s); return 0; }\n`,
    },
    turns: [
      look("What is there?", "cat Makefile main.c gen.py"),
      act("The loop runs over the end.", edit("main.c", "i <= 4", "i < 4")),
      act("Cubes are wanted.", edit("gen.py", "i * i", "i * i * i")),
      act("Build it.", "make prog"),
      act("What does it say?", "./prog | tee said.txt"),
    ],
    verify: [
      expects("cat said.txt", "36", "what it said"),
      expects("./prog", "36", "the program"),
      `make -q prog || { echo "not up to date"; exit 1; }`,
    ].join("\n"),
  },
  {
    id: "build-out-of-tree",
    ...shell,
    follows: "Terminal-Bench: configure, build and install a CMake project",
    files: {
      "CMakeLists.txt": `cmake_minimum_required(VERSION 3.10)\nproject(greet C)\noption(LOUD "shout" OFF)\nadd_executable(greet greet.c)\nif(LOUD)\n  target_compile_definitions(greet PRIVATE LOUD)\nendif()\ninstall(TARGETS greet DESTINATION bin)\n`,
      "greet.c": `#include <stdio.h>\nint main(void) {\n#ifdef LOUD\nputs("HELLO");\n#else\nputs("hello");\n#endif\nreturn 0; }\n`,
    },
    turns: [
      look("The options?", "cat CMakeLists.txt"),
      act(
        "Configure.",
        "mkdir -p /var/build && cmake -S . -B /var/build -DLOUD=ON -DCMAKE_INSTALL_PREFIX=/opt/greet | tail -n 2",
      ),
      act("Build.", "cmake --build /var/build 2>&1 | tail -n 1"),
      act("Install.", "cmake --install /var/build"),
      act("On the path.", "ln -s /opt/greet/bin/greet /usr/local/bin/greet; greet"),
    ],
    verify: expects("/usr/local/bin/greet", "HELLO", "the program"),
  },
  {
    id: "build-flags-in-the-shell",
    ...shell,
    files: { "f.c": `#include <stdio.h>\nint main(void) { printf("%d %s\\n", LEVEL, NAME); return 0; }\n` },
    turns: [
      act("A folder for it.", "mkdir -p out && cd out"),
      act("The level.", "export CPPFLAGS=-DLEVEL=3"),
      act("The name.", `export CPPFLAGS="$CPPFLAGS -DNAME='\\"nine\\"'"; echo $CPPFLAGS`),
      look("Where are we?", "pwd; env | grep CPP"),
      act("Compile.", "eval cc $CPPFLAGS -c ../f.c -o f.o"),
      act("Link.", "cc f.o -o f; ./f"),
    ],
    verify: expects("./out/f", "3 nine", "the program"),
  },
  {
    id: "build-static-library",
    ...shell,
    files: {
      "add.c": "int add(int a, int b) { return a + b; }\n",
      "mul.c": "int mul(int a, int b) { int s = 0; while (b--) s += a; return s; }\n",
      "use.c": `#include <stdio.h>\nint add(int, int); int mul(int, int);\nint main(void) { printf("%d\\n", add(2, mul(3, 4))); return 0; }\n`,
    },
    turns: [
      act("The first object.", "cc -c add.c -o add.o"),
      act("The second.", "cc -c mul.c -o mul.o"),
      act(
        "The library.",
        "ar rcs libcalc.a add.o mul.o && mkdir -p /usr/local/lib/calc && cp libcalc.a /usr/local/lib/calc/",
      ),
      act("The sources are not needed any more.", "rm add.c mul.c add.o mul.o libcalc.a"),
      look("Is it there?", "nm /usr/local/lib/calc/libcalc.a"),
      act("Link with it.", "cc use.c -L/usr/local/lib/calc -lcalc -o use; ./use > result"),
    ],
    verify: [
      expects("cat result", "14", "the result"),
      expects("ls | xargs", "result use use.c", "the folder"),
      expects("./use", "14", "the program"),
    ].join("\n"),
  },
  {
    id: "build-incremental-stamp",
    ...shell,
    files: {
      Makefile:
        "all: a.stamp b.stamp\n%.stamp: %.in\n\t@n=$$(cat count 2>/dev/null || echo 0); echo $$((n + 1)) > count; cp $< $@\n",
      "a.in": "a\n",
      "b.in": "b\n",
    },
    turns: [
      act("All of it.", "make"),
      look("Again: nothing is to be done.", "make -n; cat count"),
      act("One input changes.", "sleep 0.02; echo a2 > a.in; make"),
      act("The other as well.", "sleep 0.02; echo b2 > b.in; make"),
      act("The sum.", write("sum.sh", "cat count a.stamp b.stamp | xargs\n"), "bash sum.sh | tee sum.txt"),
    ],
    verify: expects("cat sum.txt", "4 a2 b2", "the sum"),
  },
];
