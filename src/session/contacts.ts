// Connections to elsewhere, kept as effects: what a command did there no rewind takes back.
import type { Contact } from "../environment/environment.ts";
import type { EffectRow } from "../store/effects.ts";
import type { ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";

/** No tool has such a name. */
export const contactTool = "(network)";

export const isContact = ({ tool }: Pick<EffectRow, "tool">): boolean => tool === contactTool;

/** Those since the last call, of the thread's head. Runs alone. */
export function noteContacts({ catalog, environment }: SessionDeps, { name }: Pick<ThreadRow, "name">): void {
  const found = environment.contacts?.() ?? [];
  const thread = found.length === 0 ? undefined : catalog.thread(name);
  if (thread === undefined) return;
  const head = thread.head === null ? undefined : catalog.checkpoint(thread.head);
  for (const contact of found) {
    catalog.noteEffect({
      thread: thread.id,
      checkpoint: head?.id ?? null,
      seq: head?.seq ?? null,
      epoch: catalog.epoch(),
      call: null,
      tool: contactTool,
      class: "irreversible",
      description: `connected to ${place(contact)}`,
      arguments: JSON.stringify({ address: contact.address, port: contact.port }),
      consumes: [],
    });
  }
}

/** To a server on the same machine, which may have been one of the commands' own and have ended since, it is only told. */
export const leavesMachine = (row: EffectRow): boolean =>
  !/^(127\.|::1$)/.test((JSON.parse(row.arguments) as Contact).address);

/** Places of these rows, each once. */
export const contactedBy = (rows: readonly EffectRow[]): string[] => [
  ...new Set(rows.filter(isContact).map((row) => place(JSON.parse(row.arguments) as Contact))),
];

const place = ({ address, port }: Contact): string => `${address.includes(":") ? `[${address}]` : address}:${port}`;
