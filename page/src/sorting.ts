// What a click on a column's head does.

/** The order after a click on a column's head: numbers begin with the largest, and a third click ends it. */
export function nextSort(sort: string, column: string, isNumber: boolean): string {
  const [first, second] = isNumber ? [`-${column}`, column] : [column, `-${column}`];
  if (sort === first) return second;
  return sort === second ? "" : first;
}
