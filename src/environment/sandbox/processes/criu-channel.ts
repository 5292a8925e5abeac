// How the host talks to a CRIU that was started inside of a sandbox's namespaces: whole messages of its RPC socket, in both directions.

/**
 * One `criu swrk` process: the SOCK_SEQPACKET socket that it answers on, one protobuf message (`criu_req`, `criu_resp`) a packet.
 * It inherits the images folder as descriptor 9 (`/proc/self/fd/9` in its own view) and works there.
 */
export interface CriuChannel {
  send(message: Uint8Array): void;
  /** The next message of CRIU, or null when it has ended. One reader at a time. */
  receive(): Promise<Uint8Array | null>;
  /** Ends it with SIGKILL if it still runs; resolves when it has gone. No error when called twice. */
  close(): Promise<void>;
}

/** The CRIU program in a private prefix or on the machine. */
export interface CriuProgram {
  readonly version: string;
  /** Folder below which the program and its libraries lie; a descriptor of it is handed to the process as number 8. */
  readonly prefix: string;
  /** The command line, with paths that start with `/proc/self/fd/8/` where they lie in the prefix. `swrk 3` and the like come behind it. */
  readonly command: readonly string[];
}
