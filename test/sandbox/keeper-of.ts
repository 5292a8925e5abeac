// The keeper of the sandboxes that a process owns.
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";

const programsOf = (parent: number): number[] =>
  readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);

export const keeperOf = (owner: number): number =>
  programsOf(owner).find((pid) => basename(readlinkSync(`/proc/${pid}/exe`)) === "agentrewind-sandbox") as number;
