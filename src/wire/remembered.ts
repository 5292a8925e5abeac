// What is worked out for an item is worked out once for each object: nobody changes an item that was given to the relay.
import type { Item } from "./format.ts";

export function remembered(nameOf: (item: Item) => string): (item: Item) => string {
  const names = new WeakMap<Item, string>();
  return (item) => {
    let name = names.get(item);
    if (name === undefined) {
      name = nameOf(item);
      names.set(item, name);
    }
    return name;
  };
}
