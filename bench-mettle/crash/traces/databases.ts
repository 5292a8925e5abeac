// Databases: SQLite through files and through open connections, PostgreSQL, and a key-value server of our own.
import { act, background, expects, listens, look, type Trace, until, write } from "./trace.ts";

const shell = { family: "databases", kind: "shell" } as const;

const store = `import socketserver
data, log = {}, []
class Store(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            verb, *rest = line.decode().split()
            if verb == "set": data[rest[0]] = rest[1]; log.append(rest[0]); answer = "ok"
            elif verb == "get": answer = data.get(rest[0], "-")
            elif verb == "incr": data[rest[0]] = str(int(data.get(rest[0], "0")) + int(rest[1])); answer = data[rest[0]]
            elif verb == "del": answer = data.pop(rest[0], "-")
            else: answer = " ".join(k + "=" + data[k] for k in sorted(data))
            self.wfile.write((answer + "\\n").encode())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 8131), Store).serve_forever()
`;
const ask = (line: string): string =>
  `{ exec 3<>/dev/tcp/127.0.0.1/8131; echo ${line} >&3; head -n 1 <&3; exec 3>&-; }`;

const ledger = `import sqlite3, sys, os
db = sqlite3.connect("ledger.db", isolation_level=None)
pipe = os.open("orders", os.O_RDWR)
buffer = b""
while True:
    buffer += os.read(pipe, 4096)
    while b"\\n" in buffer:
        line, buffer = buffer.split(b"\\n", 1)
        line = line.decode()
        if line.startswith("dump"):
            with open("dump.part", "w") as out: out.write(str(db.execute("select coalesce(sum(amount),0) from entry").fetchone()[0]) + "\\n")
            os.rename("dump.part", "dump")
        else: db.execute(line)
`;
const order = (line: string): string => `timeout 1 bash -c "echo '${line}' > orders"`;

const postgres = "PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH";
const as = "setpriv --reuid=65534 --regid=65534 --clear-groups";
const psql = (line: string): string => `psql -h /var/lib/pg-agent -p 8132 -U agent -Atqd postgres -c "${line}"`;

export const databases: readonly Trace[] = [
  {
    id: "db-key-value",
    ...shell,
    follows: "Terminal-Bench: implement and run a key-value store with a protocol of its own",
    files: {},
    turns: [
      look("Is the port free?", "(: </dev/tcp/127.0.0.1/8131) 2>/dev/null || echo free"),
      act("The server.", write("store.py", store)),
      act("Start it.", `${background("python3 store.py")} ${listens(8131)}`),
      act("A first value.", ask("set colour green")),
      act("A counter.", `${ask("incr hits 5")}; ${ask("incr hits 2")}`),
      act("Something that goes again.", `${ask("set wrong 1")}; ${ask("del wrong")}; ${ask("incr hits 1")}`),
      act("What there is.", `${ask("all")} > all.txt; cat all.txt`),
    ],
    verify: [
      expects("cat all.txt", "colour=green hits=8", "what was there"),
      expects(ask("all"), "colour=green hits=8", "the server"),
    ].join("\n"),
  },
  {
    id: "db-temporary-table",
    ...shell,
    files: { "ledger.py": ledger },
    turns: [
      look("How does it take orders?", "cat ledger.py"),
      act("Start it.", `mkfifo orders; ${background("python3 ledger.py")} ${until("[ -f ledger.db ]")}`),
      act("A table of the connection's own.", order("create temp table entry (amount int)")),
      act("Entries.", `${order("insert into entry values (40)")}; ${order("insert into entry values (2)")}`),
      act("One more.", order("insert into entry values (100)")),
      act("The sum.", `${order("dump")}; ${until("[ -f dump ]")}; cat dump`),
    ],
    verify: expects("cat dump", "142", "the sum"),
  },
  {
    id: "db-migration",
    ...shell,
    follows: "Terminal-Bench: migrate a SQLite database without losing rows",
    files: {
      "schema.sql":
        "create table person (id integer primary key, name text, city text);\ninsert into person (name, city) values ('ada', 'london'), ('bob', 'paris'), ('cy', 'london');\n",
    },
    prepare: "sqlite3 people.db < schema.sql",
    turns: [
      look("The schema?", "sqlite3 people.db .schema"),
      act("A copy first.", "sqlite3 people.db '.backup before.db'"),
      act(
        "Cities of their own.",
        'sqlite3 people.db "create table city (id integer primary key, name text unique); insert into city (name) select distinct city from person order by city;"',
      ),
      act(
        "People name them.",
        "sqlite3 people.db 'alter table person add column city_id integer references city(id); update person set city_id = (select id from city where city.name = person.city);'",
      ),
      act("The old column goes.", "sqlite3 people.db 'alter table person drop column city;'"),
      look("Does it hold?", "sqlite3 people.db 'pragma integrity_check; select * from person'"),
      act(
        "A view for who read the old one.",
        "sqlite3 people.db 'create view people as select person.name, city.name as city from person join city on city.id = city_id;'",
      ),
    ],
    verify: [
      expects(
        "sqlite3 people.db 'select name, city from people order by name' | xargs",
        "ada|london bob|paris cy|london",
        "the view",
      ),
      expects("sqlite3 people.db .schema | grep -c 'person.*city text' || true", "0", "the old column"),
      expects("sqlite3 before.db 'select city from person' | xargs", "london paris london", "the copy"),
    ].join("\n"),
  },
  {
    id: "db-postgres",
    ...shell,
    follows: "Terminal-Bench: bring up PostgreSQL and load data into it",
    files: { "rows.csv": "1,apple,3\n2,pear,5\n3,plum,8\n" },
    turns: [
      act(
        "A cluster.",
        `${postgres}; mkdir -p /var/lib/pg-agent && chown 65534 /var/lib/pg-agent && (cd /var/lib/pg-agent && ${as} initdb -A trust -N -U agent -D data >/dev/null); tail -n 2 /var/lib/pg-agent/data/PG_VERSION`,
      ),
      act(
        "Start it.",
        `(cd /var/lib/pg-agent && ${as} pg_ctl -D data -o '-p 8132 -k /var/lib/pg-agent -c fsync=off' -l log -w start >/dev/null)`,
      ),
      act("A table.", psql("create table fruit (id int primary key, name text, stock int)")),
      act("The rows.", `psql -h /var/lib/pg-agent -p 8132 -U agent -qd postgres -c "\\copy fruit from 'rows.csv' csv"`),
      look("Are they there?", psql("select * from fruit")),
      act("Pears are sold.", psql("update fruit set stock = stock - 4 where name = 'pear'")),
      act("The sum.", `${psql("select sum(stock) from fruit")} > sum.txt; cat sum.txt`),
    ],
    verify: [
      expects("cat sum.txt", "12", "the sum"),
      expects(psql("select stock from fruit where id = 2"), "1", "the server"),
    ].join("\n"),
  },
  {
    id: "db-truncated-log",
    ...shell,
    follows: "Terminal-Bench: recover what can be recovered of a damaged table",
    files: { "rows.txt": "7|ok\n8|ok\nbroken\n9|ok\n" },
    turns: [
      look("What is left?", "cat rows.txt"),
      act("What can be read.", "grep -E '^[0-9]+[|]' rows.txt > good.txt"),
      act(
        "Into a database.",
        "sqlite3 out.db 'create table r (id int, state text)' && sqlite3 out.db '.import good.txt r'",
      ),
      act("What could not.", "grep -vE '^[0-9]+[|]' rows.txt > bad.txt"),
      act(
        "The result as JSON.",
        "sqlite3 -json out.db 'select id from r order by id' | jq -c '[.[].id]' > ids.json; cat ids.json",
      ),
    ],
    verify: [
      expects("cat ids.json", "[7,8,9]", "the ids"),
      expects("cat bad.txt", "broken", "what could not be read"),
      expects("sqlite3 out.db 'select count(*) from r'", "3", "the table"),
    ].join("\n"),
  },
];
