// The script of a page that has figures only: the results of a reproduction.
import { drawCharts } from "./charts.ts";

drawCharts();
