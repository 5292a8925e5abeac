// Chooses how the steps of a restore are run: by the addon where it is there, by Node alone where not.
import type { Breathe } from "../../breathe.ts";
import { loadNative } from "../../native.ts";
import type { ObjectReader } from "../../store/objects.ts";
import type { JobRunner } from "./job.ts";
import { nativeJobs } from "./jobs-native.ts";
import { portableJobs } from "./jobs-portable.ts";
import type { Posix } from "./posix.ts";

export function openJobs(root: string, posix: Posix, objects: ObjectReader, breathe: Breathe): JobRunner {
  const { native } = loadNative();
  return native === null ? portableJobs(posix, objects, breathe) : nativeJobs(root, native, objects, breathe);
}
