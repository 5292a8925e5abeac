// The tools bound to an environment: what each answers, in a directory and over an environment in another process.
import { bindTools, type EnvironmentToolOptions, type ToolAnswer } from "agentrewind";
import { beforeEach, describe, expect, test } from "vitest";
import { connectRemote } from "../../examples/remote-environment/environment.ts";
import { remoteServer } from "../helpers/remote.ts";
import { makePlace, useRewind } from "../helpers/workspace.ts";

const url = remoteServer();

describe.each(["directory", "remote"] as const)("%s", (kind) => {
  let rewind: Awaited<ReturnType<typeof useRewind>>;
  beforeEach(async () => {
    rewind = await useRewind(makePlace(), kind === "directory" ? {} : { environment: await connectRemote(url()) });
  });

  async function use(name: string, args: unknown, options: EnvironmentToolOptions = {}): Promise<ToolAnswer> {
    const tool = bindTools(rewind, { readGuard: false, ...options }).find((one) => one.name === name);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    return tool.run(args);
  }
  const textOf = async (name: string, args: unknown, options?: EnvironmentToolOptions): Promise<string> => {
    const { text, error } = await use(name, args, options);
    expect(error, text).toBeUndefined();
    return text;
  };
  const refusal = async (name: string, args: unknown, options?: EnvironmentToolOptions): Promise<string> => {
    const { text, error } = await use(name, args, options);
    expect(error, text).toBeDefined();
    expect(text).toMatch(/^Not done: /);
    return `${error?.code} ${text}`;
  };
  const shell = async (command: string): Promise<void> => {
    expect(await rewind.environment.exec(command)).toMatchObject({ exitCode: 0 });
  };

  test("bash: both streams in their order, the exit code, the time", async () => {
    expect(await textOf("bash", { command: "echo a; echo b >&2; echo c" })).toBe("a\nb\nc");
    expect(await textOf("bash", { command: "true" })).toBe("(no output)");
    expect(await textOf("bash", { command: "echo x; false" })).toBe("x\n[exit code 1]");
    expect(await textOf("bash", { command: "printf '\\033[31mred\\033[0m'" })).toBe("red");
    expect(await textOf("bash", { command: "if" })).toMatch(/syntax error[\s\S]*\[exit code 2\]$/);
    expect(await textOf("bash", { command: "echo x; sleep 30", timeout: 1 })).toMatch(/^x\n\[ended after 1 s/);
    expect(await refusal("bash", { command: "" })).toContain("BAD_ARGUMENT");
    expect(await refusal("bash", { command: "x", timeout: 100_000 })).toContain("BAD_ARGUMENT");
  });

  test("bash: of long output the middle is left out, and it is said how to see it", async () => {
    const text = await textOf("bash", { command: "seq 100000" }, { outputLimit: 2_000 });
    expect(text.length).toBeLessThan(2_600);
    expect(text).toMatch(/^1\n2\n/);
    expect(text).toMatch(/\n99999\n100000$/);
    const [, left] = /\[… \d+ characters, (\d+) lines, left out here\. .*offset and limit …\]/.exec(text) ?? [];
    const kept = text.split("\n").filter((line) => /^\d+$/.test(line)).length;
    expect(Number(left) + kept).toBe(100_000);
    expect(await textOf("bash", { command: "yes | head -c 20000000" })).toMatch(
      /\[ended: it wrote more than can be kept/,
    );
  });

  test("read: numbered lines, ranges, where to read on", async () => {
    await shell("seq 10 > a.txt; printf 'no end' > b.txt; printf 'x\\r\\ny\\r\\n' > crlf.txt; : > empty.txt");
    expect(await textOf("read", { path: "a.txt", offset: 4, limit: 2 })).toBe(
      "4\t4\n5\t5\n[lines 4 to 5 of 10; read on with offset 6]",
    );
    expect(await textOf("read", { path: "./a.txt", offset: 10 })).toBe("10\t10\n[lines 10 to 10 of 10]");
    expect(await textOf("read", { path: "b.txt" })).toBe("1\tno end\n[no line end at the end of the file]");
    expect(await textOf("read", { path: "crlf.txt" })).toBe("1\tx\n2\ty\n[line ends: CRLF; edit keeps them]");
    expect(await textOf("read", { path: "empty.txt" })).toBe("(the file is empty)");
    expect(await refusal("read", { path: "a.txt", offset: 11 })).toMatch(/BAD_ARGUMENT .*has 10 lines/);
  });

  test("read: a long file comes in pieces that fit together, a long line is cut and says so", async () => {
    await shell("seq 5000 > long.txt; head -c 9000 /dev/zero | tr '\\0' x > line.txt");
    const lines: string[] = [];
    for (let offset: number | null = 1; offset !== null; ) {
      const text: string = await textOf("read", { path: "long.txt", offset }, { outputLimit: 3_000 });
      expect(text.length).toBeLessThan(3_100);
      lines.push(...text.split("\n").filter((line) => !line.startsWith("[")));
      const next: RegExpExecArray | null = /read on with offset (\d+)/.exec(text);
      offset = next === null ? null : Number(next[1]);
    }
    expect(lines).toEqual(Array.from({ length: 5000 }, (_, index) => `${index + 1}\t${index + 1}`));
    const cut = await textOf("read", { path: "line.txt" });
    expect(cut).toContain("[+7000 characters]");
    expect(cut).toContain("cut -c");
  });

  test("read: what is not there, a folder, a pipe, binary files are told apart", async () => {
    await shell("mkdir -p sub/deep; mkfifo pipe; printf 'a\\0b' > bin; printf '\\377\\376' > latin");
    expect(await refusal("read", { path: "sub/none" })).toMatch(/NO_FILE .*List sub to see/);
    expect(await refusal("read", { path: "none/none" })).toContain("NO_FILE");
    expect(await refusal("read", { path: "sub" })).toContain("WRONG_KIND");
    expect(await refusal("read", { path: "pipe" })).toContain("WRONG_KIND");
    expect(await refusal("write", { path: "pipe", content: "x" })).toContain("WRONG_KIND");
    expect(await refusal("read", { path: "bin" })).toMatch(/NOT_TEXT .*3 bytes/);
    expect(await refusal("edit", { path: "latin", old: "a", new: "b" })).toContain("NOT_TEXT");
    expect(await refusal("list", { path: "bin" })).toContain("WRONG_KIND");
    expect(await refusal("list", { path: "nowhere" })).toContain("NO_FILE");
  });

  test("write: new with its folders, or instead of what is there", async () => {
    expect(await textOf("write", { path: "x/y/z.txt", content: "a\nb\n" })).toBe("Made x/y/z.txt: 2 lines, 4 bytes.");
    expect(await textOf("write", { path: "x/y/z.txt", content: "é" })).toBe("Replaced x/y/z.txt: 1 line, 2 bytes.");
    expect(Buffer.from(await rewind.environment.readFile("x/y/z.txt")).toString()).toBe("é");
    expect(await refusal("write", { path: "x", content: "" })).toContain("WRONG_KIND");
    expect(await refusal("write", { path: ".", content: "" })).toContain("BAD_ARGUMENT");
  });

  test("edit: exactly once, and otherwise what to do", async () => {
    await shell("printf 'a $& b\\n  two\\n  two\\nend\\n' > a.txt; printf 'one\\r\\ntwo\\r\\nthree\\r\\n' > crlf.txt");
    expect(await textOf("edit", { path: "a.txt", old: "$&", new: "$1 $$" })).toBe("Edited a.txt at line 1.");
    expect(await textOf("bash", { command: "head -1 a.txt" })).toBe("a $1 $$ b");
    expect(await refusal("edit", { path: "a.txt", old: "two", new: "2" })).toMatch(
      /AMBIGUOUS_MATCH .*occurs 2 times in a.txt, at lines 2, 3/,
    );
    expect(await refusal("edit", { path: "a.txt", old: "\ttwo\n", new: "2" })).toMatch(
      /NO_MATCH .*first line is at lines 2, 3/,
    );
    expect(await refusal("edit", { path: "a.txt", old: "2\t  two", new: "2" })).toMatch(/NO_MATCH .*line numbers/);
    expect(await refusal("edit", { path: "a.txt", old: "nowhere", new: "" })).toMatch(/NO_MATCH .*Read the part/);
    expect(await refusal("edit", { path: "a.txt", old: "end", new: "end" })).toContain("BAD_ARGUMENT");
    expect(await refusal("edit", { path: "none", old: "a", new: "b" })).toContain("NO_FILE");
    await textOf("edit", { path: "crlf.txt", old: "one\ntwo", new: "1\n2\n2.5" });
    expect(Buffer.from(await rewind.environment.readFile("crlf.txt")).toString()).toBe("1\r\n2\r\n2.5\r\nthree\r\n");
    await textOf("edit", { path: "a.txt", old: "end\n", new: "" });
    expect(await textOf("bash", { command: "tail -1 a.txt" })).toBe("  two");
  });

  test("edit: overlapping places count each", async () => {
    await shell("printf 'aaa' > a.txt");
    expect(await refusal("edit", { path: "a.txt", old: "aa", new: "b" })).toMatch(/AMBIGUOUS_MATCH .*2 times/);
    await shell("yes a | head -c 4000000 > many.txt; head -c 9000000 /dev/zero > large.txt");
    expect(await refusal("edit", { path: "many.txt", old: "a", new: "b" })).toMatch(
      /2000000 times .*at lines 1, 2, 3,.* 8, …/,
    );
    expect(await refusal("read", { path: "large.txt" })).toMatch(/FILE_TOO_LARGE .*9000000 bytes/);
  });

  test("list: kinds, hidden names, an end where there are too many", async () => {
    await shell("mkdir d; touch .hidden b; ln -s b l; mkfifo p; mkdir many; cd many; seq 1000 | xargs touch");
    expect(await textOf("list", {})).toBe(".hidden\nb\nd/\nl@\nmany/\np|");
    expect(await textOf("list", { path: "d" })).toBe("(the folder is empty)");
    expect(await textOf("list", { path: "many" }, { outputLimit: 600 })).toMatch(/\[\d+ more of 1000: /);
  });

  test("hostile names work, as they are listed and as they are", async () => {
    const names = ["-rf", "a b", "$(touch pwned)", "new\nline", 'quote"d', "back\\slash", "ünï", "--help", "*"];
    for (const name of names) {
      expect(await textOf("write", { path: name, content: name }), name).toContain("Made");
      expect(await textOf("edit", { path: name, old: name, new: "edited" })).toContain("Edited");
      expect(await textOf("read", { path: name })).toContain("1\tedited");
    }
    const listed = (await textOf("list", {})).split("\n");
    expect(listed).toHaveLength(names.length);
    for (const name of listed) expect(await textOf("read", { path: name }), name).toContain("1\tedited");
    await shell("printf x > \"$(printf 'raw\\377')\"");
    expect(await refusal("read", { path: '"raw\\xff"' })).toMatch(/BAD_ARGUMENT .*bash/);
    expect(await refusal("read", { path: "a\0b" })).toContain("BAD_ARGUMENT");
  });

  test("no path leads out of the workspace", async () => {
    await shell("ln -s /etc/passwd link; ln -s /etc folder; mkdir in; ln -s in/../../.. up");
    for (const path of ["../x", "/etc/passwd", "in/../../x", "link", "folder/passwd", "up/x"]) {
      expect(await refusal("read", { path }), path).toContain("PATH_OUTSIDE");
      expect(await refusal("write", { path, content: "x" }), path).toContain("PATH_OUTSIDE");
      expect(await refusal("edit", { path, old: "root", new: "x" }), path).toContain("PATH_OUTSIDE");
    }
    expect(await refusal("list", { path: "folder" })).toContain("PATH_OUTSIDE");
    const own = rewind.environment.path("in/a.txt");
    if (own !== null) expect(await textOf("write", { path: own, content: "x" })).toContain("Made in/a.txt");
  });

  test("parallel edits of one file are all there in the end", async () => {
    await shell("seq 1 20 | sed 's/$/;/' > a.txt");
    const tools = bindTools(rewind);
    const named = (name: string) => tools.find((one) => one.name === name) as (typeof tools)[number];
    await named("read").run({ path: "a.txt" });
    const edits = Array.from({ length: 20 }, (_, index) =>
      named("edit").run({
        path: "a.txt",
        old: index === 0 ? "1;\n2;" : `\n${index + 1};`,
        new: index === 0 ? "e1;\n2;" : `\ne${index + 1};`,
      }),
    );
    for (const { text } of await Promise.all(edits)) expect(text).toContain("Edited");
    expect(await textOf("bash", { command: "grep -c ^e a.txt" })).toBe("20");
  });
});

test("a signal ends a command, and the call rejects with its reason", async () => {
  const rewind = await useRewind(makePlace());
  const [bash] = bindTools(rewind, { tools: ["bash"] });
  const stop = new AbortController();
  const ran = bash?.run({ command: "touch begun; sleep 30; touch late" }, { signal: stop.signal });
  while (!(await rewind.environment.list("")).some(({ name }) => name === "begun"))
    await new Promise((resolve) => setTimeout(resolve, 5));
  stop.abort(new Error("enough"));
  await expect(ran).rejects.toThrow("enough");
});

test("options that make no sense are refused", async () => {
  const rewind = await useRewind(makePlace());
  expect(() => bindTools(rewind, { tools: ["fly" as never] })).toThrow('There is no tool "fly"');
  expect(() => bindTools(rewind, { outputLimit: 10 })).toThrow("at least 500");
  expect(bindTools(rewind, { tools: ["read", "bash"] }).map((one) => one.name)).toEqual(["bash", "read"]);
});
