// Who comes next: two lines of environments that take turns, and slots for each kind of work on each device.
import type { EngineLimits, JobKind, Place, Scheduler, Ticket } from "./engine.ts";

type SlotKind = keyof EngineLimits;

interface Entry {
  readonly ticket: Ticket;
  readonly granted: () => void;
  /** Undefined when it does not wait. */
  line: Line | undefined;
  slot: Slot | undefined;
}

/** Held by one job, or by those that went together. */
interface Slot {
  readonly kind: SlotKind;
  readonly device: string;
  holders: number;
}

/** Of each environment its jobs in order; the environments in the order of their turns. */
type Line = Map<string, Entry[]>;

/** How many of those that make durable go together. */
const togetherAtMost = 32;

const slotKind = (kind: JobKind): SlotKind => (kind === "persist" ? "persist" : "capture");

export class Queue implements Scheduler {
  readonly #limits: EngineLimits;
  readonly #promoted: Line = new Map();
  readonly #ordinary: Line = new Map();
  readonly #taken = { capture: new Map<string, number>(), persist: new Map<string, number>() };
  readonly #all = { capture: 0, persist: 0 };
  #waiting = 0;

  constructor(limits: EngineLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting;
  }

  ask(ticket: Ticket, granted: () => void): Place {
    const entry: Entry = { ticket, granted, line: undefined, slot: undefined };
    const kind = slotKind(ticket.kind);
    if (ticket.running || ticket.kind === "restore" || this.#isFree(kind, ticket.device)) {
      this.#take(kind, ticket.device, [entry]);
      if (!ticket.running) granted();
    } else {
      this.#enqueue(entry, ticket.promoted ? this.#promoted : this.#ordinary);
    }
    return {
      promote: () => {
        if (entry.line !== this.#ordinary) return;
        this.#leave(entry);
        this.#enqueue(entry, this.#promoted);
      },
      end: () => {
        this.#leave(entry);
        this.#free(entry);
      },
    };
  }

  #enqueue(entry: Entry, line: Line): void {
    entry.line = line;
    this.#waiting++;
    const { environment } = entry.ticket;
    const own = line.get(environment);
    if (own === undefined) line.set(environment, [entry]);
    else own.push(entry);
  }

  #leave(entry: Entry): void {
    const { line, ticket } = entry;
    if (line === undefined) return;
    entry.line = undefined;
    this.#waiting--;
    const own = line.get(ticket.environment) as Entry[];
    own.splice(own.indexOf(entry), 1);
    if (own.length === 0) line.delete(ticket.environment);
  }

  #isFree(kind: SlotKind, device: string): boolean {
    const { perDevice, all } = this.#limits[kind];
    return this.#all[kind] < all && (this.#taken[kind].get(device) ?? 0) < perDevice;
  }

  #take(kind: SlotKind, device: string, entries: readonly Entry[]): void {
    const slot: Slot = { kind, device, holders: entries.length };
    this.#all[kind]++;
    this.#taken[kind].set(device, (this.#taken[kind].get(device) ?? 0) + 1);
    for (const entry of entries) entry.slot = slot;
  }

  #free(entry: Entry): void {
    const { slot } = entry;
    entry.slot = undefined;
    if (slot === undefined || --slot.holders > 0) return;
    this.#all[slot.kind]--;
    const left = (this.#taken[slot.kind].get(slot.device) as number) - 1;
    if (left === 0) this.#taken[slot.kind].delete(slot.device);
    else this.#taken[slot.kind].set(slot.device, left);
    if (this.#waiting > 0) this.#grant();
  }

  #grant(): void {
    // Told when all is counted: what is called may ask for more.
    const granted: Entry[] = [];
    for (const line of [this.#promoted, this.#ordinary]) {
      for (let next = this.#next(line); next !== undefined; next = this.#next(line)) {
        const group = next.ticket.kind === "persist" ? this.#together(next) : [next];
        for (const one of group) this.#leaveInTurn(one);
        this.#take(slotKind(next.ticket.kind), next.ticket.device, group);
        granted.push(...group);
      }
    }
    for (const entry of granted) entry.granted();
  }

  /** The first that may run, of the environment whose turn comes first. */
  #next(line: Line): Entry | undefined {
    for (const own of line.values()) {
      const found = own.find(({ ticket }) => this.#isFree(slotKind(ticket.kind), ticket.device));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** It had its turn: its environment comes last now. */
  #leaveInTurn(entry: Entry): void {
    const line = entry.line as Line;
    this.#leave(entry);
    const { environment } = entry.ticket;
    const rest = line.get(environment);
    if (rest === undefined) return;
    line.delete(environment);
    line.set(environment, rest);
  }

  #together(first: Entry): Entry[] {
    const group = [first];
    for (const line of [this.#promoted, this.#ordinary]) {
      for (const own of line.values()) {
        for (const entry of own) {
          if (group.length === togetherAtMost) return group;
          const { kind, device } = entry.ticket;
          if (entry !== first && kind === "persist" && device === first.ticket.device) group.push(entry);
        }
      }
    }
    return group;
  }
}
