// Suites of the machine's own archive, through apt's own client with lists, state and downloads of its own: the machine's are neither used nor changed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A sentence about what apt could not do. */
export class AptError extends Error {}

const systems = {
  debian: { newer: ["testing", "sid"], components: "main", keyrings: ["debian-archive-keyring"] },
  ubuntu: { newer: ["devel"], components: "main universe", keyrings: ["ubuntu-archive-keyring"] },
};

/** The machine's own suite, then with `newer` those that come after it. */
export function suites(newer) {
  const system = systemOf();
  if (system === undefined || !works("apt-get") || !works("dpkg")) {
    throw new AptError(
      "packages are fetched on Debian and Ubuntu only, elsewhere install it by the system's own means",
    );
  }
  const own = new Suite("the machine's own suite", null);
  const site = newer ? siteOf() : undefined;
  if (site === undefined) return [own];
  const keyring = system.keyrings
    .flatMap((name) => [".gpg", ".pgp"].map((end) => `/usr/share/keyrings/${name}${end}`))
    .find((file) => existsSync(file));
  const signed = keyring === undefined ? "" : `[signed-by=${keyring}] `;
  const deb = (name) => `deb ${signed}${site} ${name} ${system.components}\n`;
  return [own, ...system.newer.map((name) => new Suite(name, deb(name)))];
}

class Suite {
  constructor(name, sources) {
    this.name = name;
    this.sources = sources;
  }

  /** Version of the program in the package; null where the suite has none. Reads the suite's lists into `work`. */
  candidate(name, work) {
    const options = this.options(work);
    run("apt-get", ["-q", ...options, "update"], `the lists of ${this.name} cannot be read`);
    const policy = run("apt-cache", [...options, "policy", name], `${this.name} cannot be asked`);
    // epoch:upstream-revision, where upstream may carry letters that Debian has added.
    return /Candidate: (?:\d+:)?(\d+(?:\.\d+)*)/.exec(policy)?.[1] ?? null;
  }

  /** The package and all that it depends on. */
  unpack(name, work, into) {
    const args = ["install", "--download-only", "--yes", "--no-install-recommends", name];
    run("apt-get", ["-q", ...this.options(work), ...args], `${name} of ${this.name} cannot be downloaded`);
    const archives = join(work, "cache", "archives");
    for (const file of readdirSync(archives).filter((one) => one.endsWith(".deb"))) {
      run("dpkg", ["-x", join(archives, file), into], `${file} cannot be unpacked`);
    }
  }

  options(work) {
    for (const folder of ["lists/partial", "cache/archives/partial", "sources"]) {
      mkdirSync(join(work, folder), { recursive: true });
    }
    // Nothing counts as installed: what the packages depend on comes too.
    writeFileSync(join(work, "status"), "");
    if (this.sources !== null) writeFileSync(join(work, "sources.list"), this.sources);
    const own = [`Dir::Etc::SourceList=${work}/sources.list`, `Dir::Etc::SourceParts=${work}/sources`];
    return [
      `Dir::State::Lists=${work}/lists`,
      `Dir::State::status=${work}/status`,
      `Dir::Cache=${work}/cache`,
      "APT::Sandbox::User=root",
      "Debug::NoLocking=1",
      "Acquire::Retries=2",
      "Acquire::Languages=none",
      ...(this.sources === null ? [] : own),
    ].flatMap((option) => ["-o", option]);
  }
}

function systemOf() {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  const ids = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap((match) => match[1].split(" "));
  return ids.map((id) => systems[id]).find((one) => one !== undefined);
}

/** The archive from which the machine gets its packages; its updates for security come from elsewhere. */
function siteOf() {
  const lines = run("apt-get", ["indextargets", "--format", "$(SITE) $(RELEASE)"], "apt does not say its sources");
  const targets = lines.split("\n").map((line) => line.split(" "));
  return targets.find(([site, suite]) => site && suite && !suite.includes("-"))?.[0];
}

const works = (program) => spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;

function run(program, args, failure) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: "utf8",
    timeout: 600_000,
    maxBuffer: 1 << 26,
    env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
  });
  if (status === 0) return stdout;
  const last = (stderr ?? "").split("\n").filter((line) => line.startsWith("E: "))[0];
  throw new AptError(last === undefined ? failure : `${failure} (${last.slice(3)})`);
}
