// Whether a sandbox is still in the state that was captured last, by what its processes did since and not by what they are.
import type { Manifest } from "../environment.ts";
import type { ActivityMark } from "./activity.ts";
import type { Life } from "./life.ts";

export class Quiet {
  #marked: { readonly state: Manifest; readonly mark: ActivityMark } | undefined;
  #isReached = false;

  /** @param mark of a moment whose state this is; undefined where none could be taken */
  captured(state: Manifest, mark: ActivityMark | undefined): void {
    this.#marked = mark && { state, mark };
  }

  /** Something else than its processes may have changed it. */
  forget(): void {
    this.#marked = undefined;
  }

  /** Another life has begun. */
  begin(): void {
    this.#marked = undefined;
    this.#isReached = false;
  }

  /** Processes of the host know a way into this life: what they write there, nobody tells. */
  reach(): void {
    this.#isReached = true;
  }

  /** Whether anything was told of this state. */
  knows({ files, processes }: Manifest): boolean {
    return this.#marked?.state.files === files && this.#marked.state.processes === processes;
  }

  holds(life: Life | undefined): boolean {
    if (this.#isReached || this.#marked === undefined || life === undefined || life.over.aborted) return false;
    return life.activity?.isQuiet(this.#marked.mark) === true;
  }
}
