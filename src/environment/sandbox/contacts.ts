// Which of the connections that were made inside lead out of the sandbox.
import type { Contact } from "../environment.ts";
import { listeners, socketsOf } from "../processes/listeners.ts";
import type { LifePlan } from "./life.ts";

const ownAddress = /^(127\.|::1$|::ffff:127\.|::ffff:7f|0\.0\.0\.0$|::$)/;

/** Each place once. To the machine's own address, what listens inside is no place outside; in a network of the sandbox's own everything there is inside. */
export function outwardContacts(
  { group, network }: Pick<LifePlan, "group" | "network">,
  found: readonly Contact[],
): Contact[] {
  if (found.length === 0 || network === "own") return [];
  const isOwn = ({ address }: Contact): boolean => ownAddress.test(address);
  const inside = new Set(found.some(isOwn) ? portsInside(group.processes()) : []);
  const outward = found.filter((one) => !isOwn(one) || !inside.has(one.port));
  return [...new Map(outward.map((one) => [`${one.address} ${one.port}`, one])).values()];
}

function portsInside(pids: readonly number[]): number[] {
  const own = socketsOf(pids);
  return listeners("self")
    .filter(({ socket }) => own.has(socket))
    .map(({ port }) => port);
}
