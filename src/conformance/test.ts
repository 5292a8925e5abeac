// What a suite is made of: named checks that reject when the implementation breaks the contract.

export interface ConformanceTest {
  readonly name: string;
  /** Rejects with an AssertionError that says what is wrong. */
  run(): Promise<void>;
}
