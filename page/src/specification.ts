// The parts of a Vega-Lite specification that the page reads: layers, their data, and their fields.

/** A point of data; what it draws of texts has their rows, and a shape of many has their values in `xs`. */
export interface Datum {
  [field: string]: unknown;
  rows?: number[];
  xs?: number[];
  ys?: [number, number];
  /** How many texts it draws that the table leaves out. */
  unlisted?: number;
}

export interface Channel {
  field?: string;
  type?: string;
  title?: string | string[] | null;
}

export interface Layer {
  mark?: string | { type: string };
  data?: { name?: string; values?: Datum[] };
  encoding?: Record<string, Channel | Channel[]>;
  layer?: Layer[];
}

export interface Specification extends Layer {
  datasets?: Record<string, Datum[]>;
  width?: number | string;
  description?: string;
}

/** A layer with a mark, the kind of its mark, and its data; layers that share data have the same list. */
export interface Drawing {
  kind: string;
  data: Datum[];
  layer: Layer;
}

/** Every layer that draws something, in order. */
export function drawings(spec: Specification): Drawing[] {
  const walk = (layer: Layer, inherited: Layer["data"]): Drawing[] => {
    const source = layer.data ?? inherited;
    const below = (layer.layer ?? []).flatMap((part) => walk(part, source));
    if (layer.mark === undefined) return below;
    const data = source?.values ?? spec.datasets?.[source?.name ?? ""] ?? [];
    return [...below, { kind: typeof layer.mark === "string" ? layer.mark : layer.mark.type, data, layer }];
  };
  return walk(spec, undefined);
}

/** A channel of a layer, if it has one alone. */
export function channel(layer: Layer, name: string): Channel | null {
  const found = layer.encoding?.[name];
  return found === undefined || Array.isArray(found) ? null : found;
}
