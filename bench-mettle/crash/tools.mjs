// The tools of a trace, over an environment. They answer with texts, also where they fail, as an agent's tools do.

/** How long a command may take, in milliseconds. */
const usualMs = 10_000;

/** What each tool does with the arguments of a call. */
export function toolsOver(environment, commandMs = usualMs) {
  const tools = {
    async bash({ command }) {
      const { exitCode, signal, stdout, stderr } = await environment.exec(command, { timeoutMs: commandMs });
      return `${stdout}${stderr}[${signal ?? exitCode}]`;
    },
    async read({ path }) {
      return Buffer.from(await environment.readFile(path)).toString("utf8");
    },
    async write({ path, text }) {
      await environment.writeFile(path, text);
      return `wrote ${path}`;
    },
    async edit({ path, from, to }) {
      const text = await tools.read({ path });
      if (text.split(from).length !== 2) throw new Error(`${path} does not hold that text once`);
      return tools.write({ path, text: text.replace(from, () => to) });
    },
  };
  const answering = (run) => (args) => run(args).catch((error) => `Failed: ${error.message}`);
  return Object.fromEntries(Object.entries(tools).map(([name, run]) => [name, answering(run)]));
}

/** Whether the task is done, and what the verifier says. In a shell of its own. */
export async function verified(environment, script, commandMs = usualMs) {
  const { exitCode, stdout, stderr } = await environment.exec(["bash", "-c", script], { timeoutMs: commandMs });
  return { pass: exitCode === 0, why: `${stdout}${stderr}`.trim().slice(0, 300) };
}
