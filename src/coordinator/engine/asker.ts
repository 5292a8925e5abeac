// A process that does not hold the lease: its jobs wait in the queue of the one that does.
import { connectTo } from "../../store/socket.ts";
import type { Place, Scheduler, Ticket } from "./engine.ts";
import { type AskersLine, askersLine, leaseName, protocolVersion } from "./protocol.ts";

/** Why nobody grants. */
export type Refusal = "nobody" | "silent" | "senseless" | "version";

export interface Asking extends Scheduler {
  /** Call it again and again while a job waits: false when the holder does not answer. */
  beat(): boolean;
  close(): void;
}

/**
 * @param patience milliseconds for the holder's first answer
 * @param lost called once when the connection ends by the other end; what was asked and not granted will not be
 */
export async function askLease(
  folder: string,
  patience: number,
  lost: (why: Refusal) => void,
): Promise<Asking | Refusal> {
  let socket: Awaited<ReturnType<typeof connectTo>>;
  try {
    socket = await connectTo(folder, leaseName);
  } catch {
    // EAGAIN: a stopped holder takes no more connections; anything else is no socket of a holder.
    return "silent";
  }
  if (socket === undefined) return "nobody";
  const granted = new Map<number, () => void>();
  let asked = 0;
  let line: AskersLine;
  const welcome = await new Promise<true | Refusal>((resolve) => {
    let welcomed = false;
    const late = setTimeout(() => {
      resolve("silent");
      line.close();
    }, patience);
    line = askersLine(
      socket,
      (said) => {
        if (said.say === "granted") {
          const grant = granted.get(said.id);
          granted.delete(said.id);
          grant?.();
        } else if (said.say === "refused") {
          resolve("version");
          line.close();
        } else {
          welcomed = true;
          clearTimeout(late);
          resolve(true);
        }
      },
      (sense) => {
        clearTimeout(late);
        const why = sense ? "nobody" : "senseless";
        resolve(why);
        if (welcomed) lost(why);
      },
    );
    line.say({ say: "hello", version: protocolVersion });
  });
  if (welcome !== true) return welcome;
  socket.unref();
  return {
    ask(ticket: Ticket, grant): Place {
      const id = asked++;
      if (!ticket.running) granted.set(id, grant);
      const { kind, environment, device, promoted, running } = ticket;
      line.say({ say: "ask", id, kind, environment, device, promoted, running });
      return {
        promote: () => line.say({ say: "promote", id }),
        end: () => {
          granted.delete(id);
          line.say({ say: "end", id });
        },
      };
    },
    beat: () => line.beat(),
    close: () => line.close(),
  };
}
