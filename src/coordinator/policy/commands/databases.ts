// Database clients, and programs that change schemas.
import type { Rule } from "./action-classes.ts";
import { hasOption, isDynamic, operands, optionValues } from "./arguments.ts";

/** Every statement only looks. What a query calls may write all the same; that is taken for rare. */
export function onlyReads(sql: string): boolean {
  const bare = sql.replace(/'(?:[^']|'')*'/g, "''").replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  if (
    /\b(?:insert|update|delete|drop|truncate|alter|create|grant|revoke|replace|merge|vacuum|reindex|into|copy|call|do|attach|load_extension|writefile|setval|nextval|pg_terminate_backend|lo_unlink)\b/i.test(
      bare,
    )
  )
    return false;
  const statements = bare.split(";").map((one) => one.trim());
  return statements.every(
    (one) =>
      one === "" ||
      /^(?:select|show|explain|describe|desc|values|table|with|use|\\(?:d\S*|l\+?|q|x|timing|conninfo)(?:\s|$)|\.(?:tables|schema|headers?|mode|databases|indexes|quit|exit|width)\b|pragma\s+\w+\s*(?:\(\s*\w*\s*\)\s*)?$)/i.test(
        one,
      ),
  );
}

const judged = (texts: readonly (string | undefined)[]): "read" | "database" =>
  texts.length > 0 && texts.every((text) => text !== undefined && onlyReads(text)) ? "read" : "database";

/** @param statement options that are followed by SQL */
const client =
  (...statement: string[]): Rule =>
  ({ args, input }) => {
    if (optionValues(args, "-f", "--file").length > 0) return "database";
    if (hasOption(args, "-l", "--list") && statement.includes("--command")) return "read";
    const given = optionValues(args, ...statement);
    return judged(given.length > 0 ? given : [input]);
  };

const sqlite: Rule = ({ args, input }) => {
  const [, ...statements] = operands(args, ["-cmd", "-init", "-separator", "-newline", "-nullvalue"]);
  if (optionValues(args, "-init", "-cmd").length > 0) return "database";
  return judged(statements.length > 0 ? statements : [input]);
};

const redisReads = new Set(
  "auth client command dbsize echo exists get getrange hexists hget hgetall hkeys hlen hmget hvals info keys lindex llen lrange memory mget object ping pttl scan scard sismember slowlog smembers strlen time ttl type xlen xrange zcard zrange zrank zscore".split(
    " ",
  ),
);

const redis: Rule = ({ args }) => {
  const [command] = operands(args, ["-h", "-p", "-a", "-n", "-u", "--user", "--pass", "-s"]);
  return command !== undefined && redisReads.has(command.toLowerCase()) ? "read" : "database";
};

const mongo: Rule = ({ args }) => {
  const given = optionValues(args, "--eval");
  const looks = (text: string | undefined): boolean =>
    text !== undefined &&
    /^[\w.()"'\s{}:$,[\]-]*\.(?:find|findOne|count|countDocuments|getIndexes|stats|getCollectionNames)\([^;]*\)$/.test(
      text.trim(),
    );
  return given.length > 0 && given.every(looks) ? "read" : "database";
};

/** A migration tool: all but what only tells is taken to change the schema. */
const migrates =
  (...tells: string[]): Rule =>
  ({ args }) => {
    const words = operands(args, ["-c", "--config", "--schema", "-x", "--url", "-d"]);
    return words.length > 0 && !isDynamic(words) && tells.some((one) => words.join(" ").startsWith(one))
      ? "read"
      : "database";
  };

/** The tasks of a project that change its database; all others are its own code. */
const rails: Rule = ({ args }) => {
  const [task] = operands(args);
  if (task === undefined) return "unknown";
  if (/^db:(?:version|migrate:status|abort_if_pending_migrations)$/.test(task)) return "read";
  if (/^db(?::|$)/.test(task)) return "database";
  return ["routes", "-T", "about", "notes", "stats"].includes(task) ? "read" : "unknown";
};

/** Prisma and others that do more than migrate. */
const withMigrations =
  (changing: RegExp, telling: RegExp): Rule =>
  ({ args }) => {
    const text = operands(args, ["--schema", "--config", "--env"])
      .map((word) => word ?? "?")
      .join(" ");
    if (telling.test(text)) return "read";
    return changing.test(text) ? "database" : "unknown";
  };

export const databaseRules: Readonly<Record<string, Rule>> = {
  psql: client("-c", "--command"),
  mysql: client("-e", "--execute"),
  mariadb: client("-e", "--execute"),
  duckdb: sqlite,
  sqlite3: sqlite,
  "redis-cli": redis,
  "valkey-cli": redis,
  mongo,
  mongosh: mongo,
  cqlsh: client("-e", "--execute"),
  createdb: () => "database",
  dropdb: () => "database",
  createuser: () => "database",
  dropuser: () => "database",
  pg_restore: () => "database",
  mysqladmin: () => "database",
  mongorestore: () => "database",
  pg_dump: ({ args }) => (hasOption(args, "-f", "--file") ? "overwrite" : "read"),
  mysqldump: ({ args }) => (hasOption(args, "-r", "--result-file") ? "overwrite" : "read"),
  pg_isready: () => "read",
  rails,
  rake: rails,
  alembic: migrates("current", "history", "heads", "branches", "show", "check"),
  flyway: migrates("info", "validate"),
  liquibase: migrates("status", "history", "diff", "validate"),
  dbmate: migrates("status"),
  goose: migrates("status", "version"),
  knex: withMigrations(/^(?:migrate|seed):/, /^migrate:(?:status|list|currentVersion)/),
  sequelize: withMigrations(/^db:/, /^db:migrate:status/),
  "sequelize-cli": withMigrations(/^db:/, /^db:migrate:status/),
  prisma: withMigrations(/^(?:migrate|db) /, /^(?:migrate status|validate|format|version)/),
  "drizzle-kit": withMigrations(/^(?:push|migrate|drop|up)/, /^check/),
  typeorm: withMigrations(/^(?:migration:(?:run|revert)|schema:)/, /^migration:show/),
  diesel: withMigrations(/^(?:migration (?:run|revert|redo)|database )/, /^migration (?:list|pending)/),
  mix: withMigrations(/^ecto\./, /^ecto\.migrations/),
  artisan: withMigrations(/^(?:migrate|db:)/, /^migrate:status/),
  "manage.py": withMigrations(/^(?:migrate|flush|sqlflush|loaddata|dbshell)/, /^(?:showmigrations|check|sqlmigrate)/),
};
