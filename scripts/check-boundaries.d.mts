export declare const rules: Readonly<Record<string, readonly string[]>>;
export declare function importsOf(text: string): string[];
export declare function violations(files: Readonly<Record<string, string>>): string[];
