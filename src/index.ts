// The public face of AgentRewind. Adapters import only this.

export type { Exported } from "./bundle/export.ts";
export type { Imported } from "./bundle/import.ts";
export { type ImportOptions, importBundle } from "./bundles.ts";
export type { RunningTool } from "./coordinator/coordinator.ts";
export type { ActionCall, PolicyClass } from "./coordinator/policy/actions.ts";
export type { CaptureFunction } from "./coordinator/policy/by-function.ts";
export type { Changed, ChangedSince } from "./coordinator/policy/changed.ts";
export { type ActionClass, actionClasses } from "./coordinator/policy/commands/action-classes.ts";
export { classifyCommand } from "./coordinator/policy/commands/classify.ts";
export type { CaptureByClass, CaptureOption } from "./coordinator/policy/option.ts";
export type { CaptureTurn } from "./coordinator/policy/policy.ts";
export type {
  Capabilities,
  Capture,
  Captured,
  DirectoryEntry,
  Environment,
  ExecOptions,
  ExecResult,
  FileChanges,
  ForkedEnvironment,
  ForkOptions,
  Manifest,
  ProbeResult,
  Problem,
  Restored,
  RestoreOptions,
} from "./environment/environment.ts";
export { type ErrorCode, errorCodes, isRewindError, RewindError } from "./errors.ts";
export type {
  CaptureEvent,
  DurableEvent,
  EngineEvent,
  GrantedEvent,
  JobEvent,
  LossEvent,
  RewindEvent,
  SkipEvent,
  TurnEvent,
} from "./events.ts";
export type { Fit, PolicyOutcome } from "./observe/policies.ts";
export type { ObserveReport } from "./observe/report.ts";
export { observedTable } from "./observe/table.ts";
export type { ObserveOption, OpenOptions } from "./open-options.ts";
export type { Branch, BranchInfo, BranchSource, ExportRequest, ForkRequest, Rewind, ThreadOptions } from "./opened.ts";
export type { Progress } from "./progress.ts";
export { openRewind } from "./rewind.ts";
export type { Alignment, Boundary } from "./session/alignment.ts";
export type { ContextDiff } from "./session/compare.ts";
export type { EffectDefinition, EffectOptions, ToolArguments } from "./session/effect-rules.ts";
export type { Effect, EffectClass, EffectState, OnRepeat, ToolOutcome, ToolRun } from "./session/effect-types.ts";
export type { Moment } from "./session/moment.ts";
export type { NamedState, Position } from "./session/places.ts";
export type { Pruned, PruneRequest } from "./session/prune.ts";
export type { UndoOptions } from "./session/rewinder.ts";
export {
  endedRefusal,
  labelledText,
  messageForConversation,
  refusalText,
  siblingRefusal,
  staleRefusal,
} from "./session/texts.ts";
export type { AlignOptions, CheckpointOptions, Thread, ThreadDiff } from "./session/thread.ts";
export { checkpointTool, listCheckpointsTool, rewindTool } from "./session/tools.ts";
export type { GateOptions, Turn, TurnOptions } from "./session/turn.ts";
export type {
  Activity,
  Budget,
  Checkpoint,
  CheckpointKind,
  CheckpointState,
  Context,
  ExternalPolicy,
  Lesson,
  LessonParts,
  RewindRequest,
  RewindResult,
  Scope,
  Serializer,
  Timings,
  ToolAction,
  VerifyCommand,
} from "./session/types.ts";
export type { Finding } from "./session/verify.ts";
export type { Collected } from "./store/gc.ts";
export type { BashOptions } from "./tools/bash.ts";
export { bindTools, type EnvironmentToolName, type EnvironmentToolOptions } from "./tools/bind.ts";
export type { Conversation, EnvironmentTool, ToolAnswer, ToolCall, ToolHost } from "./tools/tool.ts";
