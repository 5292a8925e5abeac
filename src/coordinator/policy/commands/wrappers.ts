// Programs that run the command that stands behind them.
import type { Words } from "./action-classes.ts";

interface Wrapper {
  /** Options whose value is the next word. */
  readonly valued?: string;
  /** Words of its own in front of the command. */
  readonly own?: number;
  /** Variables may stand in front of the command. */
  readonly variables?: boolean;
}

const wrappers: Readonly<Record<string, Wrapper>> = {
  sudo: { valued: "-u -g -h -p -C -D -r -t -U -T --user --group --host --prompt --chdir", variables: true },
  doas: { valued: "-u -C" },
  env: { valued: "-u -C --unset --chdir", variables: true },
  time: { valued: "-f -o --format --output" },
  nohup: {},
  setsid: {},
  nice: { valued: "-n --adjustment" },
  ionice: { valued: "-c -n -p --class --classdata" },
  chrt: { own: 1 },
  taskset: { own: 1 },
  timeout: { valued: "-s -k --signal --kill-after", own: 1 },
  gtimeout: { valued: "-s -k --signal --kill-after", own: 1 },
  stdbuf: { valued: "-i -o -e --input --output --error" },
  unbuffer: {},
  strace: { valued: "-e -o -p -s -u -E -P" },
  ltrace: { valued: "-e -o -p -s -u" },
  caffeinate: { valued: "-t -w" },
  flock: { valued: "-w -E --timeout --conflict-exit-code", own: 1 },
  watch: { valued: "-n --interval" },
  xargs: { valued: "-I -n -P -L -d -a -s -E --max-args --max-procs --replace --delimiter --arg-file --max-lines" },
  command: {},
  builtin: {},
  exec: { valued: "-a" },
  coproc: {},
  npx: { valued: "-p --package" },
  bunx: {},
  dotenv: { valued: "-e -f" },
  "cross-env": { variables: true },
};

/** "npm exec", "bundle exec" and their like. */
const twoWords: Readonly<Record<string, string>> = {
  npm: "exec x",
  pnpm: "exec dlx",
  yarn: "exec run dlx",
  bundle: "exec",
  poetry: "run",
  uv: "run",
  pipenv: "run",
  bun: "x",
};

const isVariable = (word: string | undefined): boolean => word !== undefined && /^[A-Za-z_]\w*\+?=/.test(word);

/**
 * The command behind a wrapper; undefined where it is none. An empty list: there is no command.
 * @param program without its folder
 */
export function unwrapped(program: string, args: Words): Words | undefined {
  const own = Object.hasOwn(twoWords, program) ? (twoWords[program] as string).split(" ") : [];
  if (own.length > 0) {
    const [first] = args;
    if (first === undefined || !own.includes(first)) return undefined;
    return behind(args.slice(1), { valued: "--package -p -c --with --group --extra" });
  }
  return Object.hasOwn(wrappers, program) ? behind(args, wrappers[program] as Wrapper) : undefined;
}

function behind(args: Words, { valued = "", own = 0, variables = false }: Wrapper): Words {
  const withValue = valued.split(" ");
  let at = 0;
  let skip = own;
  for (; at < args.length; at++) {
    const word = args[at];
    if (word === "--") {
      at++;
      break;
    }
    if (word?.startsWith("-") && word !== "-") {
      if (withValue.includes(word)) at++;
    } else if (!(variables && isVariable(word)) && skip-- <= 0) break;
  }
  while (skip-- > 0) at++;
  while (variables && isVariable(args[at])) at++;
  return args.slice(at);
}

/** Variables that decide which programs a command runs. */
export const decides = (name: string): boolean =>
  /^(?:PATH|IFS|ENV|BASH_ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|LD_\w+|DYLD_\w+|NODE_OPTIONS|PYTHONSTARTUP|PERL5OPT|RUBYOPT|(?:GIT_)?(?:PAGER|EDITOR)|GIT_\w*(?:SSH|DIFF|ASKPASS|CONFIG)\w*)$/.test(
    name,
  );
