// Package managers, machines and clouds, other machines, processes.
import type { ActionClass, Rule } from "./action-classes.ts";
import { hasOption, operands, optionValues } from "./arguments.ts";

/**
 * A program of subcommands.
 * @param reads those that only look, as they begin
 * @param others what all others do
 */
const commands =
  (reads: string, others: ActionClass, valued: readonly string[] = []): Rule =>
  ({ args }) => {
    const text = operands(args, valued)
      .map((word) => word ?? "?")
      .join(" ");
    if (text === "") return "read";
    return reads.split(",").some((one) => text === one || text.startsWith(`${one} `)) ? "read" : others;
  };

const npm: Rule = ({ args }) => {
  const [command, sub] = operands(args, ["--prefix", "-w", "--workspace", "-C", "--dir", "--filter", "-F"]);
  const installs =
    /^(?:i|in|ins|install|ci|clean-install|add|rm|r|un|uninstall|remove|unlink|link|ln|update|up|upgrade|upgrade-interactive|dedupe|prune|rebuild|install-test|it|import|global|dlx|create|init|set)$/;
  if (command === undefined)
    return args.length === 0 ? "packages" : hasOption(args, "-v", "--version", "-h", "--help") ? "read" : "unknown";
  if (installs.test(command)) return "packages";
  if (command === "audit" || command === "cache" || command === "config")
    return sub === undefined || ["ls", "list", "get"].includes(sub) ? "read" : "packages";
  if (
    /^(?:ls|list|ll|view|info|show|outdated|search|why|explain|bin|root|prefix|ping|whoami|docs|help|fund|licenses)$/.test(
      command,
    )
  )
    return "read";
  return /^(?:publish|unpublish|deprecate|dist-tag|owner|access|token|login|logout)$/.test(command)
    ? "network"
    : "unknown";
};

const pip = commands("list,show,freeze,check,search,index,debug,help,config list,cache list,cache dir", "packages");

const cargo: Rule = ({ args }) => {
  const [command] = operands(args.filter((word) => !word?.startsWith("+")));
  if (
    command === undefined ||
    /^(?:tree|metadata|search|info|version|help|locate-project|pkgid|read-manifest)$/.test(command)
  )
    return "read";
  if (/^(?:install|uninstall|add|remove|rm|update|fetch|vendor)$/.test(command)) return "packages";
  if (command === "clean") return "delete";
  return command === "publish" || command === "yank" ? "network" : "unknown";
};

const go: Rule = ({ args }) => {
  const [command, sub] = operands(args);
  if (command === undefined || /^(?:version|env|list|doc|help|vet)$/.test(command))
    return hasOption(args, "-w", "-u") ? "write" : "read";
  if (command === "install" || command === "get") return "packages";
  if (command === "mod") return sub === "graph" || sub === "why" || sub === "verify" ? "read" : "packages";
  if (command === "clean") return "delete";
  return command === "fmt" ? "overwrite" : "unknown";
};

const cloud: Rule = ({ args }) => {
  const words = operands(args, [
    "--profile",
    "--region",
    "--output",
    "--query",
    "--project",
    "--format",
    "--filter",
    "--zone",
  ]);
  if (words.length === 0) return "read";
  return words.some(
    (word) => word !== undefined && /^(?:describe|list|get|show|ls|help|wait|tail|filter|head)(?:-|$)/.test(word),
  )
    ? "read"
    : "deploy";
};

const containers: Rule = ({ args }) => {
  const [command, sub] = operands(args, ["-H", "--host", "--context", "-c", "-f", "--file", "-p", "--project-name"]);
  if (command === undefined) return "read";
  const looks = /^(?:ps|ls|list|images|inspect|logs|stats|top|port|version|info|history|search|events|diff|config|df)$/;
  if (looks.test(command)) return "read";
  const grouped = /^(?:compose|container|image|volume|network|system|context|buildx|stack|service|node|manifest)$/;
  return grouped.test(command) && (sub === undefined || looks.test(sub)) ? "read" : "deploy";
};

const systemctl: Rule = ({ args }) => {
  const [command] = operands(args, ["-n", "-o", "-p", "-t", "-H", "-M"]);
  if (command === undefined || /^(?:status|show|cat|list-|is-|get-|help)/.test(command)) return "read";
  return /stop|kill|restart|isolate|reload-or|poweroff|reboot|halt/.test(command) ? ["deploy", "process"] : "deploy";
};

const service: Rule = ({ args }) => {
  const words = operands(args);
  if (words.includes("status") || hasOption(args, "--status-all")) return "read";
  return words.includes("start") ? "deploy" : ["deploy", "process"];
};

const curl: Rule = ({ args }) => {
  const found = new Set<ActionClass>();
  const methods = optionValues(args, "-X", "--request");
  const sends = [
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "-T",
    "--upload-file",
  ];
  if (methods.some((method) => method === undefined || !/^(?:get|head|options)$/i.test(method))) found.add("network");
  // With -G data goes into the address.
  if (
    args.some(
      (word) =>
        word !== undefined &&
        sends.some(
          (name) => word === name || word.startsWith(`${name}=`) || (name.length === 2 && word.startsWith(name)),
        ),
    ) &&
    !hasOption(args, "-G", "--get")
  )
    found.add("network");
  const output = optionValues(args, "-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar");
  if (
    output.some((path) => path !== "/dev/null" && path !== "-") ||
    hasOption(args, "-O", "--remote-name", "--remote-name-all")
  )
    found.add("overwrite");
  if (optionValues(args, "-K", "--config").length > 0) found.add("unknown");
  return found.size === 0 ? "read" : [...found];
};

const wget: Rule = ({ args }) => {
  const sends = args.some((word) => word !== undefined && /^--(?:post|body|method=(?!GET|HEAD))/i.test(word));
  // "-qO-" as well.
  const spread = args.map((word) => word?.replace(/^-[a-zA-Z]+O/, "-O"));
  const output = optionValues(spread, "-O", "--output-document");
  const stored =
    output.length === 0 ? "write" : output.every((path) => path === "-" || path === "/dev/null") ? "read" : "overwrite";
  const classes: ActionClass[] = [
    ...(sends ? ["network" as const] : []),
    ...(stored === "read" ? [] : [stored as ActionClass]),
  ];
  if (hasOption(args, "--spider")) return sends ? "network" : "read";
  return classes.length === 0 ? "read" : classes;
};

const httpie: Rule = ({ args }) => {
  const words = operands(args);
  if (words.some((word) => word === undefined || /^(?:POST|PUT|PATCH|DELETE)$/i.test(word))) return "network";
  return words.slice(1).some((word) => /^[\w-]+:?=/.test(word ?? "a=")) ? "network" : "read";
};

const gh: Rule = ({ args }) => {
  const [group, command] = operands(args, ["-R", "--repo", "--json", "-q", "--jq", "-L", "--limit"]);
  if (group === "api") {
    const sends =
      hasOption(args, "-f", "-F", "--field", "--raw-field", "--input") ||
      optionValues(args, "-X", "--method").some((one) => !/^get$/i.test(one ?? ""));
    return sends ? "network" : "read";
  }
  if (group === undefined || group === "status" || group === "search" || group === "version") return "read";
  if (command === "checkout") return "git";
  if (command === "clone" || command === "download") return "write";
  return /^(?:view|list|status|diff|checks|watch|get)$/.test(command ?? "") ? "read" : "network";
};

const kill: Rule = ({ args }) =>
  args[0] === "-l" || args[0] === "-L" || args[0] === "-0" || (args[0] === "-s" && args[1] === "0")
    ? "read"
    : "process";

const is = (names: string, rule: Rule): Record<string, Rule> =>
  Object.fromEntries(names.split(" ").map((name) => [name, rule]));

const apt = commands("list,show,search,policy,depends,rdepends,madison,showpkg,stats,dump", "packages", [
  "-o",
  "-t",
  "-c",
]);

export const systemRules: Readonly<Record<string, Rule>> = {
  ...is("npm pnpm yarn bun", npm),
  ...is("pip pip3 pipx", pip),
  ...is("apt apt-get apt-cache aptitude", apt),
  dpkg: ({ args }) =>
    hasOption(
      args,
      "-l",
      "-L",
      "-s",
      "-S",
      "-p",
      "--list",
      "--status",
      "--listfiles",
      "--search",
      "--get-selections",
      "--print-architecture",
    )
      ? "read"
      : "packages",
  rpm: ({ args }) => (hasOption(args, "-q", "--query", "-V") ? "read" : "packages"),
  ...is(
    "dnf yum zypper apk brew",
    commands("list,info,search,repolist,provides,deps,uses,outdated,config,doctor,leaves,version,se,if", "packages"),
  ),
  pacman: ({ args }) =>
    args[0]?.startsWith("-Q") || args[0]?.startsWith("-Ss") || args[0]?.startsWith("-Si") ? "read" : "packages",
  snap: commands("list,info,find,version", "packages"),
  flatpak: commands("list,info,search", "packages"),
  gem: commands("list,search,which,environment,info,contents", "packages"),
  composer: commands("show,info,search,validate,diagnose,outdated,licenses", "packages"),
  conda: commands("list,info,search,config --show,env list", "packages"),
  mamba: commands("list,info,search,env list", "packages"),
  bundle: commands("list,info,show,outdated,check,config list", "packages"),
  poetry: commands("show,check,env info,env list,version", "packages"),
  uv: commands("pip list,pip show,pip freeze,tree,version,python list", "packages"),
  cargo,
  go,
  kubectl: commands(
    "get,describe,logs,top,explain,version,api-resources,api-versions,cluster-info,diff,events,config view,config get-contexts,config current-context,auth can-i",
    "deploy",
    ["-n", "--namespace", "--context", "-o", "--output", "-l", "-f"],
  ),
  oc: commands("get,describe,logs,status,whoami,version", "deploy", ["-n", "--namespace"]),
  helm: commands("list,ls,status,get,history,show,search,template,lint,version,env", "deploy", [
    "-n",
    "--namespace",
    "--kube-context",
  ]),
  ...is(
    "terraform tofu",
    commands(
      "plan,show,validate,output,version,providers,graph,state list,state show,workspace list,workspace show",
      "deploy",
    ),
  ),
  pulumi: commands("preview,stack ls,stack output,whoami,version,about", "deploy"),
  ansible: () => "deploy",
  "ansible-playbook": ({ args }) =>
    hasOption(args, "--list-tasks", "--list-hosts", "--syntax-check") ? "read" : "deploy",
  ...is("docker podman nerdctl", containers),
  "docker-compose": containers,
  ...is("aws gcloud az doctl gsutil heroku flyctl fly vercel netlify wrangler", cloud),
  systemctl,
  service,
  ...is("reboot shutdown poweroff halt", () => ["deploy", "process"]),
  crontab: ({ args }) => (hasOption(args, "-l") ? "read" : "deploy"),
  journalctl: ({ args }) =>
    args.some((word) => word === undefined || /^--(?:vacuum|rotate|flush)/.test(word)) ? "delete" : "read",
  ...is(
    "mount umount swapon swapoff modprobe insmod rmmod sysctl iptables nft ufw useradd userdel usermod passwd groupadd",
    () => "deploy",
  ),
  curl,
  wget,
  ...is("http https", httpie),
  gh,
  glab: gh,
  ...is("ssh scp sftp ftp lftp nc ncat netcat socat telnet mail mailx sendmail mutt", () => "network"),
  kill,
  ...is("pkill killall killall5 skill xkill", () => "process"),
  fuser: ({ args }) => (hasOption(args, "-k", "--kill") ? "process" : "read"),
};
