// What the environment suite is given, and what one of its checks is.
import type { Environment, Manifest } from "../environment/environment.ts";

export interface EnvironmentInitializer {
  readonly name: string;
  /** A new environment whose workspace is empty. It needs a shell with GNU find and coreutils. */
  create(): Promise<Environment>;
  /** The environment that was closed, opened again as another process would. */
  reopen?(closed: Environment): Promise<Environment>;
  /** Makes an object that only `manifest` needs missing from the store. */
  damage?(environment: Environment, manifest: Manifest): Promise<void>;
  /** Frees what `create` made; the environment may be closed already. */
  destroy?(environment: Environment): Promise<void>;
}

/** One check: gets an open environment and may exchange it (a check that reopens returns the new one). */
export interface EnvironmentCheck {
  readonly name: string;
  check(environment: Environment, initializer: EnvironmentInitializer): Promise<Environment | undefined>;
}
