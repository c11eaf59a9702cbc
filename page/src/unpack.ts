/** Blocks of data in the page: base64 text of raw deflate, in script elements that no browser runs. */

import { found } from "./dom";

interface FromBase64 {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as FromBase64).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The bytes of one block; its text is removed from the document, which frees it. */
export async function block(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const element = found(id), text = element.textContent ?? "";
  element.remove();
  return inflate(fromBase64(text));
}

/** A block that begins with the length of a JSON text and the text; columns follow at `at`. */
export function withHead<T>(bytes: Uint8Array<ArrayBuffer>): { head: T; bytes: Uint8Array<ArrayBuffer>; at: number } {
  const at = 4 + new DataView(bytes.buffer).getUint32(0, true);
  return { head: JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))) as T, bytes, at };
}

/** A block that holds JSON. */
export async function json<T>(id: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await block(id))) as T;
}

/** Reads one column of byte planes into `out` from `offset` on; returns the place after it. */
export function planes(bytes: Uint8Array, at: number, n: number, out: { [index: number]: number }, offset: number): number {
  const width = bytes[at++] ?? 0;
  for (let i = 0; i < n; i++) out[offset + i] = bytes[at + i]!;
  for (let plane = 1, scale = 256; plane < width; plane++, scale *= 256) {
    const base = at + plane * n;
    for (let i = 0; i < n; i++) out[offset + i]! += bytes[base + i]! * scale;
  }
  return at + width * n;
}

/** The signed number of a zigzag code: 0, 1, 2, 3 stand for 0, -1, 1, -2. */
export const unzigzag = (code: number): number => (code % 2 ? -(code + 1) / 2 : code / 2);
