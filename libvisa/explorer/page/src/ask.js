// Questions to the server. A question under a name replaces the one before it, whose answer nobody wants any more.

const underWay = new Map();

export async function ask(path, question = {}, name = path) {
  underWay.get(name)?.abort();
  const controller = new AbortController();
  underWay.set(name, controller);
  const answer = await fetch("/api/" + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
    signal: controller.signal,
  });
  if (!answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Error((await answer.text()).trim());
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error ?? `status ${answer.status}`);
  return told;
}

export const isReplaced = (error) => error.name === "AbortError";
