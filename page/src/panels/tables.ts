/** Tables that can be sorted by any column, filtered by any word, and grouped. */

import type { DataTable, DataTables, TableColumn } from "../contract";
import { make } from "../dom";
import type { Page } from "../page";
import { count, duration, share, several, size, speedup } from "../words";

export type Cell = string | number | null;
export type Row = readonly Cell[];
/** A column and whether the largest comes first. */
export interface Order { readonly column: number; readonly falling: boolean }

const FIRST_ROWS = 15;

const written = (cell: Cell, unit: TableColumn["unit"]): string => {
  if (cell === null || cell === "") return "–";
  if (typeof cell === "string") return cell;
  switch (unit) {
    case "ns": return duration(cell);
    case "bytes": return size(cell);
    case "bytes_per_second": return `${size(cell)}/s`;
    case "share": return share(cell, 1);
    case "gain": return speedup(cell);
    case "count": return count(cell);
    default: return String(Math.round(cell * 100) / 100);
  }
};

/** Rows in order; those without a value come last either way, and equal ones stay as they were. */
export function sorted(rows: readonly Row[], order: Order): Row[] {
  const sign = order.falling ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = a[order.column] ?? null, right = b[order.column] ?? null;
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "number" && typeof right === "number") return sign * (left - right);
    return sign * String(left).localeCompare(String(right), "en");
  });
}

/** Rows in which every word occurs in some text, in any case. */
export function filtered(rows: readonly Row[], asked: string): Row[] {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const text = row.filter((cell) => typeof cell === "string").join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** One row per value of a column: its name, how many rows it has, and the sums of those columns that can be summed. */
export function grouped(rows: readonly Row[], columns: readonly TableColumn[], by: number): { columns: TableColumn[]; rows: Row[] } {
  const summed = columns.flatMap((column, place) => (column.sums ? [place] : []));
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const key = String(row[by] ?? "–"), sums = groups.get(key) ?? [0, ...summed.map(() => 0)];
    sums[0] = (sums[0] ?? 0) + 1;
    summed.forEach((place, at) => { sums[at + 1] = (sums[at + 1] ?? 0) + Number(row[place] ?? 0); });
    groups.set(key, sums);
  }
  const titles = [by, ...summed].flatMap((place) => columns[place] ?? []);
  const [name, ...rest] = titles;
  return { columns: [...(name ? [name] : []), { title: "rows", unit: "count", group: false, sums: true }, ...rest], rows: [...groups].map(([key, sums]) => [key, ...sums]) };
}

const show: ((text: string) => boolean)[] = [];

/** Filter the first table that has a row of this name, and go to it; false if none has. */
export const showRow = (name: string): boolean => show.some((one) => one(name));

export function tables(data: DataTables, element: HTMLElement, page: Page): void {
  for (const table of data.tables) element.append(view(table, page));
}

function view(table: DataTable, page: Page): HTMLElement {
  let order: Order | null = null, group: number | null = null, all = false;
  const id = `table-${table.title.toLowerCase().replace(/\W+/g, "-")}`;
  const filter = make("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${table.title.toLowerCase()}`, oninput: () => draw() });
  const choices = table.columns.flatMap((column, place) => (column.group ? [make("option", { value: place }, column.title)] : []));
  const grouping = make("select", { "aria-label": `Group ${table.title.toLowerCase()} by`, onchange: () => { group = grouping.value === "" ? null : Number(grouping.value); order = null; draw(); } },
    make("option", { value: "" }, "not grouped"), ...choices);
  const summary = make("span", { class: "quiet", role: "status" });
  const head = make("thead"), body = make("tbody");
  const more = make("button", { type: "button", onclick: () => { all = true; draw(); } }, "Show all");
  const caption = make("caption", { class: "sr" }, table.title);
  const root = make("div", { class: "table-view", id }, make("h3", {}, table.title),
    make("p", { class: "tools" }, filter, " ", ...(choices.length ? [make("label", {}, "group by ", grouping), " "] : []), summary),
    make("div", { class: "wide" }, make("table", {}, caption, head, body)), more);

  const sortBy = (column: number, isText: boolean): void => {
    order = { column, falling: order?.column === column ? !order.falling : !isText };
    draw(column);
  };
  /** Draws it anew; the heading of `focused` keeps the focus. */
  function draw(focused?: number): void {
    const kept = filtered(table.rows, filter.value);
    const shown = group === null ? { columns: [...table.columns], rows: kept } : grouped(kept, table.columns, group);
    const rows = sorted(shown.rows, order ?? largest(shown.columns));
    const listed = all || group !== null ? rows : rows.slice(0, FIRST_ROWS);
    const current = order ?? largest(shown.columns);
    head.replaceChildren(make("tr", {}, ...shown.columns.map((column, place) => heading(column, place, current))));
    body.replaceChildren(...listed.map((row) => make("tr", {}, ...shown.columns.map((column, place) => cell(row, column, place)))));
    if (focused !== undefined) head.querySelectorAll("button")[focused]?.focus();
    const left = table.left_out ? `; ${several(table.left_out, "shorter one")} not on this page` : "";
    summary.textContent = `${several(listed.length, group === null ? "row" : "group")} of ${count(group === null ? table.rows.length : rows.length)}${left}`;
    more.hidden = listed.length === rows.length;
    more.textContent = `Show all ${count(rows.length)}`;
  }
  function heading(column: TableColumn, place: number, current: Order): HTMLElement {
    const isText = column.unit === "text", mine = current.column === place;
    const button = make("button", { type: "button", class: "sort", onclick: () => sortBy(place, isText) }, column.title, make("span", { "aria-hidden": "true" }, mine ? (current.falling ? " ▾" : " ▴") : ""));
    return make("th", { scope: "col", class: isText ? "" : "number", "aria-sort": mine ? (current.falling ? "descending" : "ascending") : "none" }, button);
  }
  function cell(row: Row, column: TableColumn, place: number): HTMLElement {
    const text = written(row[place] ?? null, column.unit);
    if (place > 0) return make("td", { class: column.unit === "text" ? "" : "number" }, text);
    const act = group === null ? () => page.search(text) : () => { filter.value = text; group = null; grouping.value = ""; draw(); };
    return make("th", { scope: "row", class: "name" }, make("button", { type: "button", class: "link", title: group === null ? `${text}\nShow it on the timeline` : "Show its rows", onclick: act }, text));
  }
  show.push((name) => {
    if (!table.rows.some((row) => row[0] === name)) return false;
    filter.value = name; group = null; grouping.value = "";
    draw();
    root.scrollIntoView({ block: "nearest" });
    return true;
  });
  draw();
  return root;
}

/** By the first time, the longest first. */
function largest(columns: readonly TableColumn[]): Order {
  const time = columns.findIndex((column) => column.unit === "ns");
  return { column: Math.max(time, 0), falling: time >= 0 };
}
