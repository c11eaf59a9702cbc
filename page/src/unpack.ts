/** Blocks of data in the page: raw deflate as text, in script elements that no browser runs. */

import { found } from "./dom";

const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => (code === 120 ? 60 : code === 121 ? 38 : code) - 35);

/** Bytes from text of 85 characters, as `planes.py` writes it: first how many bytes pad the last four, then five digits for four bytes. */
export function fromText(text: string): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array((text.length - 1) / 5), digit = (at: number): number => DIGITS[text.charCodeAt(at)]!;
  for (let k = 0, at = 1; k < words.length; k++, at += 5) words[k] = (((digit(at) * 85 + digit(at + 1)) * 85 + digit(at + 2)) * 85 + digit(at + 3)) * 85 + digit(at + 4);
  return new Uint8Array(words.buffer, 0, words.byteLength - Number(text[0]));
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
  return inflate(fromText(text));
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

/** Reads one column of byte planes into `out` from `offset` on; returns the place after it. */
export function planes(bytes: Uint8Array, at: number, n: number, out: Float64Array | Uint16Array | Uint32Array, offset: number): number {
  const width = bytes[at++] ?? 0, second = at + n, third = second + n;
  if (width < 2) out.set(bytes.subarray(at, second), offset);
  else if (width === 2) for (let i = 0; i < n; i++) out[offset + i] = bytes[at + i]! + bytes[second + i]! * 256;
  else for (let i = 0; i < n; i++) out[offset + i] = bytes[at + i]! + bytes[second + i]! * 256 + bytes[third + i]! * 65536;
  for (let plane = 3, scale = 2 ** 24; plane < width; plane++, scale *= 256) {
    const base = at + plane * n;
    for (let i = 0; i < n; i++) out[offset + i]! += bytes[base + i]! * scale;
  }
  return at + width * n;
}

/** The signed number of a zigzag code: 0, 1, 2, 3 stand for 0, -1, 1, -2. */
export const unzigzag = (code: number): number => (code % 2 ? -(code + 1) / 2 : code / 2);
