// Programs that look at files, and programs that change them.
import type { Rule, Words } from "./action-classes.ts";
import { hasOption, isDynamic, operands, optionValues } from "./arguments.ts";

const readers =
  ". [ [[ arch awk b2sum base32 base64 basename bg break cal cat cd cksum cmp column comm compgen continue cut declare df diff diff3 dig dir dirname dirs du echo egrep exit expand export expr factor false fg fgrep file fmt fold free getent getopts grep groups head hexdump history host iconv id info jobs join jq less let local locale locate look ls lsblk lscpu lsof lspci lsusb man md5sum more nl nproc nslookup numfmt od paste pathchk pgrep pidof ping popd pr printenv printf ps pstree pushd pwd read readlink readonly realpath return rev rg seq sha1sum sha256sum sha512sum shasum shift shopt sleep ss stat strings sum tac tail test top tput tr traceroute tree true tsort tty type ulimit umask uname unexpand uniq unset uptime users vdir vmstat w wait wc whatis whereis which who whoami xxd zcat zgrep zless".split(
    " ",
  );
const read: Rule = () => "read";

/** An awk program may run commands and write files. */
const awk: Rule = ({ args }) => {
  if (hasOption(args, "-i", "--in-place") || optionValues(args, "-i").includes("inplace")) return "overwrite";
  if (optionValues(args, "-f", "--file").length > 0) return "unknown";
  const program = operands(args, ["-F", "-v"])[0];
  return program === undefined || /\bsystem\s*\(|[|>]\s*"|\|&|getline/.test(program) ? "unknown" : "read";
};

/** A sed program may write files (w), and with GNU's also run commands (e). */
const sed: Rule = ({ args }) => {
  if (args.some((word) => word !== undefined && /^(?:-[a-zA-Z]*i|--in-place)/.test(word))) return "overwrite";
  if (optionValues(args, "-f", "--file").length > 0) return "unknown";
  const given = optionValues(args, "-e", "--expression");
  const programs = given.length > 0 ? given : operands(args).slice(0, 1);
  if (isDynamic(programs)) return "unknown";
  return programs.some((text) =>
    /(?:^|[;{}\d$/,!])\s*[weW](?:\s|$)|[^\w\s\\][gpIiMm\d]*[we](?:\s|;|$)/.test(text ?? ""),
  )
    ? "unknown"
    : "read";
};

const copy: Rule = ({ args }) => (hasOption(args, "-n", "--no-clobber") ? "write" : "overwrite");

const tar: Rule = ({ args }) => {
  const mode = args.find((word) => word !== undefined && /^-?[a-zA-Z]*[ctxruA][a-zA-Z]*$/.test(word)) ?? "";
  if (hasOption(args, "--to-command", "-I", "--use-compress-program", "--checkpoint-action")) return "unknown";
  if (hasOption(args, "--remove-files", "--delete")) return "delete";
  if (hasOption(args, "--list") || /^-?[a-zA-Z]*t/.test(mode)) return "read";
  return "overwrite";
};

/** @param runs what the words behind -exec do */
export const find =
  (runs: (words: Words) => ReturnType<Rule>): Rule =>
  ({ args }) => {
    const found = new Set<ReturnType<Rule>>();
    for (let at = 0; at < args.length; at++) {
      const word = args[at];
      if (word === "-delete") found.add("delete");
      else if (word !== undefined && /^-f(?:print0?|printf|ls)$/.test(word)) found.add("overwrite");
      else if (word !== undefined && /^-(?:exec|execdir|ok|okdir)$/.test(word)) {
        const rest = args.slice(at + 1);
        const end = rest.findIndex((one) => one === ";" || one === "+");
        found.add(runs(end < 0 ? rest : rest.slice(0, end)));
        at += end < 0 ? rest.length : end + 1;
      }
    }
    return found.size === 0 ? "read" : [...found].flat();
  };

const isRemote = (path: string | undefined): boolean =>
  path === undefined || /^(?:[\w.-]+@)?[\w.-]+:|^\w+:\/\//.test(path);

export const fileRules: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(readers.map((name) => [name, read])),
  ".": () => "unknown",
  awk,
  gawk: awk,
  mawk: awk,
  sed,
  gsed: sed,
  cp: copy,
  mv: copy,
  install: () => "overwrite",
  patch: ({ args }) => (hasOption(args, "--dry-run") ? "read" : "overwrite"),
  dd: ({ args }) => (args.some((word) => word === undefined || word.startsWith("of=")) ? "overwrite" : "read"),
  truncate: () => "overwrite",
  fallocate: () => "overwrite",
  tee: ({ args }) => {
    if (operands(args).every((word) => word === "/dev/null")) return "read";
    return hasOption(args, "-a", "--append") ? "write" : "overwrite";
  },
  sort: ({ args }) => {
    if (hasOption(args, "--compress-program")) return "unknown";
    return hasOption(args, "-o", "--output") ? "overwrite" : "read";
  },
  uniq: ({ args }) => (operands(args, ["-f", "-s", "-w"]).length > 1 ? "overwrite" : "read"),
  yq: ({ args }) => (hasOption(args, "-i", "--inplace", "--in-place") ? "overwrite" : "read"),
  xxd: ({ args }) => (operands(args, ["-s", "-l", "-c", "-g", "-o"]).length > 1 ? "overwrite" : "read"),
  date: ({ args }) => (hasOption(args, "-s", "--set") ? "unknown" : "read"),
  hostname: ({ args }) => (operands(args).length > 0 ? "unknown" : "read"),
  ip: ({ args }) =>
    args.some((word) => /^(?:add|del|delete|set|flush|replace|change)$/.test(word ?? "add")) ? "unknown" : "read",
  rg: ({ args }) => (hasOption(args, "--pre") ? "unknown" : "read"),
  fd: ({ args }) => (hasOption(args, "-x", "-X", "--exec", "--exec-batch") ? "unknown" : "read"),
  tar,
  bsdtar: tar,
  unzip: ({ args }) => (hasOption(args, "-l", "-t", "-p", "-Z") ? "read" : "overwrite"),
  "7z": ({ args }) => (args[0] === "l" || args[0] === "t" ? "read" : "overwrite"),
  ...Object.fromEntries(
    "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd zip compress uncompress"
      .split(" ")
      .map((name) => [
        name,
        (({ args }) =>
          hasOption(args, "-c", "-t", "-l", "--stdout", "--list", "--test") ? "read" : "overwrite") as Rule,
      ]),
  ),
  ...Object.fromEntries(
    "mkfs fdisk sfdisk parted wipefs mkswap".split(" ").map((name) => [name, (() => "overwrite") as Rule]),
  ),
  ln: ({ args }) => (hasOption(args, "-f", "--force") ? "overwrite" : "write"),
  mkdir: () => "write",
  mkfifo: () => "write",
  mknod: () => "write",
  mktemp: () => "write",
  touch: () => "write",
  split: () => "overwrite",
  csplit: () => "overwrite",
  rm: () => "delete",
  rmdir: () => "delete",
  unlink: () => "delete",
  shred: () => "delete",
  srm: () => "delete",
  trash: () => "delete",
  "trash-put": () => "delete",
  chmod: () => "permissions",
  chown: () => "permissions",
  chgrp: () => "permissions",
  chattr: () => "permissions",
  setfacl: () => "permissions",
  setfattr: () => "permissions",
  rsync: ({ args }) => {
    const paths = operands(args, ["-e", "--rsh", "--exclude", "--include", "--filter", "-f", "--files-from"]);
    const from = args.some((word) => word?.startsWith("--delete") || word === "--remove-source-files");
    const to = isRemote(paths.at(-1)) ? ("network" as const) : ("overwrite" as const);
    if (hasOption(args, "-n", "--dry-run")) return "read";
    return from ? [to, "delete"] : to;
  },
};
