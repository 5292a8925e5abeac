// Extended attributes, ACLs, capabilities, owners, modes and times.
import { join } from "node:path";
import { acl, fileCapability, setAttribute, setTimeNs } from "../helpers/inode.ts";
import { sh, workload } from "./workload.ts";

workload("extended attributes of every kind, of files, folders, links and the root", {
  needs: ["attributes"],
  nativeOnly: true,
  build(root) {
    sh(root, "mkdir d; echo 1 > f; echo 1 > empty; ln -s f l; echo 1 > same");
    setAttribute(join(root, "f"), "user.text", "kept");
    setAttribute(join(root, "f"), "user.large", Buffer.alloc(2500, "v"));
    setAttribute(join(root, "f"), "user.\u00e9 \xff", Buffer.from([0, 255, 10]));
    setAttribute(join(root, "empty"), "user.empty", "");
    setAttribute(join(root, "d"), "user.folder", "1");
    setAttribute(join(root, "d"), "trusted.folder", "1");
    setAttribute(join(root, "l"), "trusted.link", "1");
    setAttribute(join(root, "same"), "trusted.same", "1");
    setAttribute(root, "user.root", "1");
  },
  change(root) {
    sh(root, "rm empty l; echo 2 > empty; ln -s f l; rmdir d; mkdir d; echo 2 > f");
    setAttribute(join(root, "f"), "user.text", "changed");
    setAttribute(join(root, "same"), "trusted.same", "2");
    setAttribute(join(root, "same"), "user.more", "2");
    setAttribute(root, "user.root", "2");
  },
});

const named = acl(
  { tag: "owner", permissions: 7 },
  { tag: "user", permissions: 6, id: 1234 },
  { tag: "group", permissions: 4 },
  { tag: "namedGroup", permissions: 5, id: 4321 },
  { tag: "mask", permissions: 5 },
  { tag: "other", permissions: 0 },
);
const narrow = acl(
  { tag: "owner", permissions: 6 },
  { tag: "user", permissions: 1, id: 99 },
  { tag: "group", permissions: 0 },
  { tag: "mask", permissions: 1 },
  { tag: "other", permissions: 4 },
);

workload("POSIX ACLs, and defaults that new files would inherit", {
  needs: ["attributes"],
  nativeOnly: true,
  build(root) {
    sh(root, "mkdir d; echo 1 > f; echo 1 > g; echo 1 > plain; mkdir d/in; echo 1 > d/in/f");
    setAttribute(join(root, "f"), "system.posix_acl_access", named);
    setAttribute(join(root, "g"), "system.posix_acl_access", narrow);
    setAttribute(join(root, "d"), "system.posix_acl_access", named);
    setAttribute(join(root, "d"), "system.posix_acl_default", narrow);
    setAttribute(root, "system.posix_acl_default", named);
  },
  change(root) {
    sh(root, "rm f plain; echo 2 > f; echo 2 > plain; rm -r d; mkdir -p d/in; echo 2 > d/in/f");
    setAttribute(join(root, "g"), "system.posix_acl_access", named);
  },
});

workload("file capabilities, also on a file with an owner and a set-user-id bit", {
  needs: ["attributes"],
  nativeOnly: true,
  build(root) {
    sh(root, "echo 1 > a; echo 1 > b; echo 1 > c; echo 1 > d; chown 1234:5678 b; chmod 6755 b; echo 1 > new");
    for (const name of ["a", "b", "c", "d"]) setAttribute(join(root, name), "security.capability", fileCapability());
  },
  change(root) {
    // Writing and a change of owner drop capabilities.
    sh(root, "echo 2 >> a; chown 1:1 b; rm c; echo 1 > c");
    setAttribute(join(root, "d"), "security.capability", fileCapability(0));
    setAttribute(join(root, "new"), "security.capability", fileCapability());
  },
});

workload("owner and group, of links and folders too", {
  needs: ["root"],
  build: (root) =>
    sh(
      root,
      "mkdir -p d/e; echo 1 > d/f; ln -s f d/l; chown 1234:5678 d d/f; chown -h 9:10 d/l; chown 65534:0 d/e; chown 1:1 .",
    ),
  change: (root) => sh(root, "chown -hR 0:0 .; chown 7:7 d/f"),
});

workload("set-user-id, set-group-id and sticky bits, with owners", {
  needs: ["root"],
  build: (root) =>
    sh(
      root,
      `mkdir sticky shared; for m in 4755 2755 6711 1644 0000 0777; do echo $m > f$m; chown 12:34 f$m; chmod $m f$m; done
       chown 5:6 sticky shared; chmod 1777 sticky; chmod 2775 shared; echo 1 > shared/in; mkdir shared/d; chmod 7777 .`,
    ),
  // A write and a change of owner take set-id bits away.
  change: (root) =>
    sh(
      root,
      "for f in f*; do echo x >> $f; chown 0:0 $f; done; chmod 700 sticky; rm -r shared; mkdir shared; chmod 755 .",
    ),
});

workload("read-only files", {
  build: (root) => sh(root, "mkdir d; echo 1 > f; echo 1 > d/g; echo 1 > kept; chmod 444 f kept; chmod 400 d/g"),
  change: (root) => sh(root, "rm -f f; echo 2 > f; chmod 644 d/g; echo 2 > d/g; chmod 640 kept"),
});

const second = 1_000_000_000n;
/** 1901 to 2446: what ext4 holds. */
const moments = {
  early: -2_000_000_000n * second + 1_000n,
  "before-1970": -1n * second + 250_000_000n,
  "just-before": -1_000n,
  zero: 0n,
  "just-after": 1_000n,
  "near-2038": 2_147_483_647n * second + 999_999_000n,
  "after-2038": 2_147_483_648n * second,
  "year-2106": 4_294_967_296n * second + 1_000n,
  "year-2200": 7_258_118_400n * second + 123_456_000n,
};

for (const [precision, offset, nativeOnly] of [
  ["microseconds", 0n, false],
  ["nanoseconds", 789n, true],
] as const) {
  workload(`times before 1970 and after 2038, in ${precision}`, {
    nativeOnly,
    build(root) {
      sh(root, `for n in ${Object.keys(moments).join(" ")}; do echo 1 > $n; mkdir d-$n; ln -s $n l-$n; done`);
      for (const [name, time] of Object.entries(moments)) {
        setTimeNs(time + offset, ...["", "d-", "l-"].map((kind) => join(root, kind + name)));
      }
      setTimeNs(981_173_106_123_456_000n + offset, root);
    },
    change: (root) =>
      sh(root, "for f in *; do if test -L $f; then rm $f; ln -s x $f; else touch $f; fi; done; echo 2 > zero"),
  });
}
