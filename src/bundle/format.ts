// What a bundle is made of (docs/format.md, Bundles): records, their kinds, and what is said of one that is none.
import { RewindError } from "../errors.ts";
import { kindBit } from "../store/reach.ts";

export const magic = Buffer.from("ARWBNDL1");
/** Raised when an older reader would misread what is written. */
export const bundleFormat = 1;

/** Objects have the number by which the store tells how they are read (kindBit); these are the others. */
export const recordKind = { header: 128, image: 129, imageFile: 130, imageBytes: 131, row: 132, trailer: 255 } as const;

export const isObject = (kind: number): boolean => (Object.values(kindBit) as number[]).includes(kind);

/** u8 kind, u8 coding, u16 zero, u32 bytes that follow, u32 bytes of the payload, its SHA-256. */
export const headSize = 44;
export const coding = { plain: 0, deflated: 1 } as const;

/** Longer payloads are not deflated: nobody can make much of little, and no call takes long. */
export const deflateLimit = 256 << 10;
/** Of one object; of anything else a thousandth. */
export const payloadLimit = 1 << 30;
export const smallLimit = 64 << 20;
/** Process images are cut into pieces of this size. */
export const pieceSize = 256 << 10;

/** @param what a part of a sentence: "its record 7 is cut short" */
export const damaged = (what: string, cause?: unknown): RewindError =>
  new RewindError("BUNDLE_DAMAGED", `This is no whole bundle: ${what}.`, {
    hint: "Nothing was imported. Copy or export it again, and import bundles only from whom you trust.",
    cause,
  });
