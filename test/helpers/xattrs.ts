// Extended attributes of one file, through the addon: Node has no call for them.
import { closeSync, constants, openSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

interface Addon {
  getXattrs(root: number, path: Uint8Array): [Buffer, Buffer][];
  setXattr(root: number, path: Uint8Array, name: Uint8Array, value: Uint8Array): void;
}

const file = resolve(import.meta.dirname, "../../native/build/Release/agentrewind.node");

function within<T>(folder: string, work: (addon: Addon, root: number) => T): T {
  const root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return work(createRequire(import.meta.url)(file) as Addon, root);
  } finally {
    closeSync(root);
  }
}

export const setXattr = (folder: string, path: string, name: string, value: string): void =>
  within(folder, (addon, root) => addon.setXattr(root, Buffer.from(path), Buffer.from(name), Buffer.from(value)));

export const getXattrs = (folder: string, path: string): Record<string, string> =>
  within(folder, (addon, root) =>
    Object.fromEntries(addon.getXattrs(root, Buffer.from(path)).map(([name, value]) => [`${name}`, `${value}`])),
  );
