// What is shown to models and people: without credentials, and no longer than it may be.

const secrets: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{16,}/g,
  /\b(?:ghp|gho|ghu|ghs|ghr|github_pat)_[A-Za-z0-9_]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{35}/g,
  /\bey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /(?<=\bBearer\s)[A-Za-z0-9._~+/-]{16,}=*/gi,
  /(?<=:\/\/[^\s/:@]{1,64}:)[^\s/@]{1,256}(?=@)/g,
  /(?<=\b(?:password|passwd|secret|token|api[_-]?key)["']?\s*[=:]\s*["']?)[^\s"',;]{6,}/gi,
];

/** Replaces what looks like a credential by "[masked]". */
export function maskSecrets(text: string): string {
  return secrets.reduce((masked, pattern) => masked.replace(pattern, "[masked]"), text);
}

export function shorten(text: string, limit: number): string {
  const one = text.trim();
  return one.length <= limit ? one : `${one.slice(0, limit - 1).trimEnd()}…`;
}
