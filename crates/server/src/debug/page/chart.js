// A figure over the last two minutes, as a line over a pale area.

import { svg } from './dom.js';

export const SECONDS = 120;
const HEIGHT = 32;
// Points further apart have nothing between them: the stream was lost.
const GAP_SECONDS = 3.5;

// Values of the last two minutes with their times, in seconds.
export class Series {
  constructor() {
    this.points = [];
  }

  add(time, value) {
    const { points } = this;
    if (points.length && points.at(-1)[0] > time) points.length = 0;
    if (value != null) points.push([time, value]);
    while (points.length && points[0][0] < time - SECONDS) points.shift();
  }

  max() {
    return this.points.reduce((most, [, value]) => Math.max(most, value), 0);
  }
}

// Draws a series. It is decoration beside the figure itself, so that those who listen are spared it.
export class Chart {
  constructor() {
    this.area = svg('path', { class: 'area' });
    this.line = svg('path', { class: 'line' });
    const frame = { class: 'chart', viewBox: `0 0 ${SECONDS} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
    this.root = svg('svg', frame, this.area, this.line);
  }

  draw(series, now) {
    const most = series.max() || 1;
    let line = '';
    let area = '';
    let last = null;
    for (const [time, value] of series.points) {
      const x = (SECONDS - (now - time)).toFixed(1);
      const y = (HEIGHT - 1 - (value / most) * (HEIGHT - 3)).toFixed(1);
      if (last === null || time - last.time > GAP_SECONDS) {
        if (last) area += `V${HEIGHT}Z`;
        line += `M${x} ${y}`;
        area += `M${x} ${HEIGHT}V${y}`;
      } else {
        line += `L${x} ${y}`;
        area += `L${x} ${y}`;
      }
      last = { time };
    }
    if (last) area += `V${HEIGHT}Z`;
    this.line.setAttribute('d', line);
    this.area.setAttribute('d', area);
  }
}
