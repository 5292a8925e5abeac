// Reads the bank's export: a header line, fields split by semicolons, quotes where a field holds one.

export function parseRows(text) {
  const [header, ...lines] = text.trimEnd().split("\n");
  const names = splitLine(header);
  return lines.map((line, index) => {
    const fields = splitLine(line);
    if (fields.length !== names.length) {
      throw new Error(`line ${index + 2}: ${fields.length} fields instead of ${names.length}`);
    }
    return Object.fromEntries(names.map((name, column) => [name, fields[column]]));
  });
}

function splitLine(line) {
  const fields = line.match(/(?<=^|;)("(?:[^"]|"")*"|[^;]*)/g);
  return fields.map((field) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field));
}
