/** Blocks of data in the page: raw deflate as base64, in script elements that no browser runs. */

import { found } from "./dom";

/** The bytes of base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const characters = atob(text), bytes = new Uint8Array(characters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = characters.charCodeAt(k);
  return bytes;
}

/** Without a Blob or a Response, every wait is a microtask: the parser does not go on to the next block before it is done. */
export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const { readable, writable } = new DecompressionStream("deflate-raw"), writer = writable.getWriter(), reader = readable.getReader();
  const failed = (): void => undefined; // the reader throws the same error
  writer.write(packed).catch(failed);
  writer.close().catch(failed);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) { chunks.push(next.value); length += next.value.length; }
  const bytes = new Uint8Array(length);
  for (let at = 0, k = 0; k < chunks.length; at += chunks[k++]!.length) bytes.set(chunks[k]!, at);
  return bytes;
}

/** The bytes of one block; its text is removed from the document, which frees it. */
export async function block(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const element = found(id), text = element.textContent ?? "";
  element.remove();
  return inflate(fromBase64(text));
}

/** The length of a JSON text and the text, from `from` on; columns follow at `at`. */
export function withHead<T>(bytes: Uint8Array<ArrayBuffer>, from = 0): { head: T; bytes: Uint8Array<ArrayBuffer>; at: number } {
  const at = from + 4 + new DataView(bytes.buffer).getUint32(from, true);
  return { head: JSON.parse(new TextDecoder().decode(bytes.subarray(from + 4, at))) as T, bytes, at };
}

/** A block that holds JSON. */
export async function json<T>(id: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await block(id))) as T;
}

/** Adds one column of byte planes to the zeros of `out` from `offset` on; returns the place after it. */
export function planes(bytes: Uint8Array, at: number, n: number, out: Float64Array | Uint16Array | Uint32Array, offset: number): number {
  const width = bytes[at++] ?? 0;
  for (let plane = 0, scale = 1; plane < width; plane++, scale *= 256, at += n) for (let i = 0; i < n; i++) out[offset + i]! += bytes[at + i]! * scale;
  return at;
}

/** The signed number of a zigzag code: 0, 1, 2, 3 stand for 0, -1, 1, -2. */
export const unzigzag = (code: number): number => (code % 2 ? -(code + 1) / 2 : code / 2);
