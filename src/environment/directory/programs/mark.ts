// The variable by which processes are known again that descend from a command of `exec`, also behind the end of its process group and of whoever started it.

export const markVariable = "AGENTREWIND_RUN";

/** What the command's processes get besides their other variables. A command that runs inside of another one has both marks, the inner one last. */
export function markedVariables(environment: string, run: string): Record<string, string> {
  const outer = process.env[markVariable];
  const own = `${environment}.${run}`;
  return { [markVariable]: outer === undefined || outer === "" ? own : `${outer} ${own}` };
}

/** The runs of this environment that a value of the variable names, the outermost first. */
export const runsIn = (marks: string, environment: string): string[] =>
  marks
    .split(" ")
    .filter((one) => one.startsWith(`${environment}.`))
    .map((one) => one.slice(environment.length + 1));
