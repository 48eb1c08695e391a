// Places in a text: the compiler counts bytes of UTF-8, the editor UTF-16 units.
// The one idea: a text of ASCII, as nearly all are, counts alike; else a table of the places where the two part is walked.

export function placesOf(text) {
  if (/^[\0-\x7f]*$/.test(text)) return { toUnit: (byte) => Math.min(byte, text.length), toByte: (unit) => unit };
  const units = new Uint32Array(text.length * 3 + 1), bytes = new Uint32Array(text.length + 1);
  let byte = 0;
  for (let unit = 0; unit < text.length;) {
    const code = text.codePointAt(unit), wide = code > 0xffff ? 2 : 1, size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let i = 0; i < wide; i++) bytes[unit + i] = byte;
    for (let i = 0; i < size; i++) units[byte + i] = unit;
    byte += size;
    unit += wide;
  }
  bytes[text.length] = byte;
  units[byte] = text.length;
  return { toUnit: (at) => (at >= byte ? text.length : units[at]), toByte: (unit) => bytes[Math.min(unit, text.length)] };
}
