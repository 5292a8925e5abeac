// Finds rsync and restic: on the machine, or in a private folder into which --fetch-tools unpacks their Debian packages. Nothing is installed.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Tool } from "./command.ts";

const prefix = fileURLToPath(new URL("../../node_modules/.cache/agentrewind-bench", import.meta.url));
const unpacked = join(prefix, "root");
const packages = ["rsync", "restic"];

const works = ([program, ...before]: Tool, name: string): boolean => {
  try {
    execFileSync(program, [...before, name === "restic" ? "version" : "--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};

/** The tool, or why it is missing and how to get it. */
export function findTool(name: string): Tool | string {
  const fetched = fetchedTool(name);
  const found = [[name] as const, ...(fetched === undefined ? [] : [fetched])].find((tool) => works(tool, name));
  return (
    found ??
    `${name} is not installed: install the Debian package ${name}, or run with --fetch-tools, which unpacks it into a private folder`
  );
}

/** Started through its own loader, so that it runs with the libraries that it came with. */
function fetchedTool(name: string): Tool | undefined {
  const program = join(unpacked, "usr", "bin", name);
  if (!existsSync(program)) return undefined;
  const folders = ["lib", "usr/lib"].map((folder) => join(unpacked, folder)).filter((folder) => existsSync(folder));
  const libraries = folders.flatMap((folder) => [
    folder,
    ...readdirSync(folder)
      .filter((one) => one.includes("-linux-"))
      .map((one) => join(folder, one)),
  ]);
  const loader = libraries
    .flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)))
    .find((file) => /\/ld-linux[^/]*\.so\.\d+$/.test(file));
  return loader === undefined ? [program] : [loader, "--library-path", libraries.join(":"), program];
}

/** With apt's own client and the machine's own sources, but lists, state and downloads of its own. @throws Error with what apt said */
export function fetchTools(): void {
  const apt = join(prefix, "apt");
  rmSync(unpacked, { recursive: true, force: true });
  for (const folder of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(apt, folder), { recursive: true });
  mkdirSync(unpacked, { recursive: true });
  // Nothing counts as installed: what they depend on comes too.
  writeFileSync(join(apt, "status"), "");
  const options = [
    `Dir::State::Lists=${apt}/lists`,
    `Dir::State::status=${apt}/status`,
    `Dir::Cache=${apt}/cache`,
    "APT::Sandbox::User=root",
    "Debug::NoLocking=1",
  ].flatMap((option) => ["-o", option]);
  const call = (...args: string[]): string =>
    execFileSync("apt-get", ["-q", ...options, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  call("update");
  call("install", "--download-only", "--yes", "--no-install-recommends", ...packages);
  const archives = join(apt, "cache", "archives");
  for (const file of readdirSync(archives)) {
    if (file.endsWith(".deb")) execFileSync("dpkg", ["-x", join(archives, file), unpacked]);
  }
  rmSync(apt, { recursive: true });
}
