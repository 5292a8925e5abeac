// Where a program lies and with which libraries it is started, so that it runs the same where the machine's own loader and libraries are not seen.
import { constants } from "node:fs";
import { access, readdir, realpath } from "node:fs/promises";
import { delimiter, dirname, isAbsolute, join, relative } from "node:path";
import { runProgram } from "./run.ts";

export interface Placed {
  /** Folder below which all of it lies. */
  readonly prefix: string;
  /** For a person. */
  readonly shown: string;
  /** Of its dynamic loader, below `prefix`; null for a program without libraries. */
  readonly loader: string | null;
  /** The command line where `prefix` is reached as `root`, by this loader. */
  commandAt(root: string, loader?: string | null): readonly string[];
}

/** Relative paths. */
interface Parts {
  readonly program: string;
  /** Null for a program without libraries. */
  readonly loader: string | null;
  readonly libraries: readonly string[];
}

const make = (prefix: string, { program, loader, libraries }: Parts): Placed => ({
  prefix,
  shown: join(prefix, program),
  loader,
  commandAt(root, by = loader) {
    const at = (path: string): string => join(root, path);
    if (by === null) return [at(program)];
    return [at(by), "--inhibit-cache", "--library-path", libraries.map(at).join(":"), at(program)];
  },
});

/** By PATH, which need not name the folders of the administrator's programs. */
export async function placeInMachine(name: string): Promise<Placed | null> {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  for (const folder of folders.filter((one) => isAbsolute(one))) {
    const program = join(folder, name);
    if (!(await isExecutable(program))) continue;
    const real = await realpath(program);
    return make("/", { program: real.slice(1), ...(await linkedWith(real)) });
  }
  return null;
}

const loaderName = /^ld-linux[^/]*\.so\.\d+$/;

/** What unpacked packages of Debian look like, with and without merged /usr. */
export async function placeInPrefix(name: string, prefix: string): Promise<Placed | null> {
  const libraries: string[] = [];
  let loader: string | null = null;
  for (const folder of ["usr/lib", "lib", "usr/lib64", "lib64"]) {
    const names = await readdir(join(prefix, folder)).catch(() => []);
    const inner = names.filter((one) => one.includes("-linux-")).map((one) => join(folder, one));
    for (const one of [folder, ...inner]) {
      const files = await readdir(join(prefix, one)).catch(() => []);
      if (files.some((file) => file.includes(".so"))) libraries.push(one);
      const found = files.find((file) => loaderName.test(file));
      if (found !== undefined) loader ??= relative(prefix, await realpath(join(prefix, one, found)).catch(() => ""));
    }
  }
  for (const folder of ["usr/sbin", "usr/bin", "sbin", "bin"]) {
    const program = join(folder, name);
    if (await isExecutable(join(prefix, program))) return make(prefix, { program, loader, libraries });
  }
  return null;
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/** As the machine's loader would find them. */
async function linkedWith(program: string): Promise<Omit<Parts, "program">> {
  const { exitCode, stdout } = await runProgram(["ldd", program]);
  const paths = exitCode === 0 ? [...stdout.toString().matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? "") : [];
  const real = await Promise.all(paths.map((path) => realpath(path)));
  const loader = real.find((path) => loaderName.test(path.slice(path.lastIndexOf("/") + 1)));
  // Libraries are looked for by the names that their links have.
  const libraries = [...new Set([...paths, ...real].map((path) => dirname(path).slice(1)))];
  return { loader: loader?.slice(1) ?? null, libraries };
}
