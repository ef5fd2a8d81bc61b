// A chart of the last ten minutes. uPlot draws it while it is in view.
import { variable } from "./format.js";
import { watchView } from "./view.js";

export const KEEP_S = 600;
const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// Returns the time axis: all the samples, but at least a minute and at most KEEP_S.
function timeRange(_, least, most) {
  const end = most ?? Date.now() / 1000;
  return [Math.max(end - KEEP_S, Math.min(least ?? end, end - 60)), end];
}

export class Plot {
  // `most` is the smallest value at which the vertical axis may end.
  constructor(element, { height, most, padding }) {
    Object.assign(this, { element, height, most, padding, isSeen: false });
    new ResizeObserver(() => this.plot?.setSize(this.size)).observe(element);
    watchView(element, (isSeen) => {
      this.isSeen = isSeen;
      this.draw();
    });
  }

  get size() {
    return { width: Math.max(200, this.element.clientWidth), height: this.height };
  }

  // Sets the chart's lines. decorate(plot) draws what else belongs on the chart.
  setLines(lines, decorate = () => {}) {
    this.plot?.destroy();
    this.plot = null;
    this.lines = lines.map((line) => ({ points: { show: false }, ...line }));
    this.decorate = decorate;
  }

  // `data` is a list of times, then a list of values for each line.
  show(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    if (!this.isSeen || !this.data) return;
    if (this.plot) this.plot.setData(this.data);
    else this.build();
  }

  build() {
    const common = { stroke: variable("soft"), grid: { stroke: variable("track"), width: 1 }, ticks: { stroke: variable("track") } };
    this.plot = new uPlot({
      ...this.size, legend: { show: false }, cursor: { show: false }, padding: this.padding,
      hooks: { draw: [this.decorate] }, series: [{}, ...this.lines],
      axes: [{ ...common, space: 90, values: (_, times) => times.map((time) => clock.format(time * 1000)) }, { ...common, size: 48 }],
      scales: { x: { time: true, range: timeRange }, y: { range: (_, __, max) => [0, Math.max(this.most, (max ?? 0) * 1.05)] } },
    }, this.data, this.element);
  }
}
