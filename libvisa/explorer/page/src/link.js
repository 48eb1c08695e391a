// The whole state in the fragment of the address, "#1" and compressed JSON: nothing of it is sent to a server.

const MOST = 1 << 20; // characters of a source

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

export async function linkOf(state) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return "#1" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// null: it is none of ours, or it was cut.
export async function stateOf(fragment) {
  if (!fragment.startsWith("#1")) return null;
  try {
    const text = atob(fragment.slice(2).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(new DecompressionStream("deflate-raw"), Uint8Array.from(text, (c) => c.charCodeAt(0)));
    const state = JSON.parse(new TextDecoder().decode(bytes));
    return typeof state.source === "string" && state.source.length <= MOST ? state : null;
  } catch {
    return null;
  }
}
