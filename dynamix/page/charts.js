// Charts as SVG, for the page of finished runs and for the dashboard: hover values, zoom, light and
// dark by CSS classes (c0 ... c7). No dependency; nothing is fetched.
//
//   const view = new View();                         // charts that share a zoom
//   const chart = new Chart(view, 'Accuracy', {unit: ''});
//   document.body.append(chart.figure);
//   chart.draw({lines: [{name, color, x, y}]});      // again whenever there is more
//
// A line may be a step (its value holds back to the x before) or dashed. y null: not measured.
'use strict';

const COLOURS = 8;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== '') made.textContent = text;
  return made;
}

// At most four significant digits, without exponent where people expect none.
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2);
  if (size >= 1000) return Math.round(value).toString();
  return String(Number(value.toPrecision(4)));
}

// Round numbers from low to high, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(factor => factor * power >= rough) * power;
  const made = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9 * step; value += step) {
    made.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  }
  return made;
}

// The last index whose x is at most `x`, or the first.
function indexAt(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle - 1;
  }
  return low;
}

// Charts that show the same stretch of x. Redrawing waits for the next frame.
class View {
  constructor() {
    this.charts = new Set();
    this.zoom = null;  // [from, to]; null: everything
    this.resized = new ResizeObserver(() => this.redraw());
  }
  setZoom(zoom) {
    this.zoom = zoom;
    this.redraw();
  }
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const chart of this.charts) chart.render();
    });
  }
}

class Chart {
  // options: unit (after a value), log2 (y axis), zero (y starts at 0), height, xUnit, xName
  constructor(view, title, options = {}) {
    Object.assign(this, {view, options, data: {}});
    this.caption = element('figcaption', {}, title);
    this.canvas = shape('svg', {role: 'img', 'aria-label': title});
    this.tip = element('div', {class: 'tip', hidden: ''});
    this.legend = element('p', {class: 'legend'});
    this.figure = element('figure', {}, this.caption, this.canvas, this.tip, this.legend);
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => this.leave());
    this.canvas.addEventListener('pointerdown', event => { this.dragged = this.place(event).x; });
    this.canvas.addEventListener('pointerup', event => this.release(event));
    this.canvas.addEventListener('dblclick', () => view.setZoom(null));
    view.charts.add(this);
    view.resized.observe(this.figure);
  }

  // data: {lines, stack, ranges, bands: [{begin, end, label}], mark: {y, name}, low, high}
  draw(data) {
    this.data = data;
    this.view.redraw();
  }

  series() {
    return [...(this.data.lines || []), ...(this.data.stack || [])];
  }

  setScales() {
    const {log2, zero} = this.options;
    let from = Infinity, to = -Infinity, low = Infinity, high = -Infinity;
    const seen = (x, y) => {
      if (x < from) from = x;
      if (x > to) to = x;
      if (this.view.zoom && (x < this.view.zoom[0] || x > this.view.zoom[1])) return;
      if (y === null || y === undefined || (log2 && y <= 0)) return;
      if (y < low) low = y;
      if (y > high) high = y;
    };
    for (const {x, y} of this.data.lines || []) x.forEach((at, i) => seen(at, y[i]));
    for (const range of this.data.ranges || []) {
      range.x.forEach((at, i) => { seen(at, range.low[i]); seen(at, range.high[i]); });
    }
    for (const {x, top} of this.data.stack || []) x.forEach((at, i) => { seen(at, top[i]); seen(at, 0); });
    if (this.data.mark) { low = Math.min(low, this.data.mark.y); high = Math.max(high, this.data.mark.y); }
    if (this.data.low !== undefined) low = Math.max(low, this.data.low);
    if (this.data.high !== undefined) high = Math.min(high, this.data.high);
    if (!(to > from)) { from = Math.min(from, 0); to = Math.max(to, from + 1); }
    if (!Number.isFinite(from)) { from = 0; to = 1; }
    if (this.view.zoom) [from, to] = this.view.zoom;
    if (!Number.isFinite(low)) { low = 0; high = 1; }
    if (zero) low = Math.min(low, 0);
    const scale = log2 ? Math.log2 : value => value;
    let [bottom, top] = [scale(low), scale(high)];
    const room = top > bottom ? 0.05 * (top - bottom) : (log2 ? 0.5 : Math.abs(top) * 0.1 || 0.5);
    top += room;
    if (!(zero && low === 0)) bottom -= room;
    Object.assign(this, {from, to, bottom, top, scale});
  }

  px(x) { return this.left + (x - this.from) / (this.to - this.from) * (this.right - this.left); }
  py(y) { return this.base - (this.scale(y) - this.bottom) / (this.top - this.bottom) * (this.base - this.roof); }

  render() {
    this.width = Math.max(260, this.canvas.clientWidth || 760);
    this.height = this.options.height || Math.round(Math.min(270, Math.max(190, this.width * 0.36)));
    Object.assign(this, {left: 52, right: this.width - 12, roof: 12, base: this.height - 24});
    this.setScales();
    this.canvas.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
    const parts = [...this.axes(), ...this.bands(), ...this.ranges(), ...this.stack(), ...this.lines()];
    this.canvas.replaceChildren(...parts);
    this.renderLegend();
  }

  axes() {
    const parts = [];
    const {log2} = this.options;
    const powers = log2 ? ticks(Math.ceil(this.bottom), Math.floor(this.top), 5).filter(Number.isInteger) : [];
    const values = powers.length > 2 ? powers.map(power => 2 ** power)
                 : log2 ? ticks(2 ** this.bottom, 2 ** this.top, 4) : ticks(this.bottom, this.top, 5);
    for (const value of values) {
      const y = this.py(value);
      if (!(y >= this.roof - 1 && y <= this.base + 1)) continue;
      parts.push(shape('line', {class: 'grid', x1: this.left, x2: this.right, y1: y, y2: y}));
      parts.push(shape('text', {class: 'tick', x: this.left - 6, y: y + 4, 'text-anchor': 'end'}, short(value)));
    }
    for (const value of ticks(this.from, this.to, this.width / 80)) {
      const at = {class: 'tick', x: this.px(value), y: this.base + 17, 'text-anchor': 'middle'};
      parts.push(shape('text', at, short(value) + (this.options.xUnit ?? ' s')));
    }
    const {mark} = this.data;
    if (mark && Number.isFinite(this.py(mark.y))) {
      const y = this.py(mark.y);
      parts.push(shape('line', {class: 'mark', x1: this.left, x2: this.right, y1: y, y2: y}));
      parts.push(shape('text', {class: 'axis', x: this.right, y: y - 4, 'text-anchor': 'end'}, mark.name));
    }
    return parts;
  }

  bands() {
    const parts = [];
    for (const [i, band] of (this.data.bands || []).entries()) {
      const begin = Math.max(this.left, this.px(band.begin)), end = Math.min(this.right, this.px(band.end ?? this.to));
      if (!(end > begin)) continue;
      const box = {class: 'band', x: begin, y: this.roof, width: end - begin, height: this.base - this.roof};
      const drawn = shape('rect', box);
      drawn.append(shape('title', {}, band.label));
      parts.push(drawn);
      if (end - begin > 7 * band.label.length) {
        parts.push(shape('text', {class: 'event', x: begin + 3, y: this.roof + 11 + 12 * (i % 3)}, band.label));
      }
    }
    return parts;
  }

  // "x,y x,y ..." of the points that are seen, at most two per pixel: the lowest and the highest.
  outline(x, y, step) {
    const places = [];
    let pixel = null, low = null, high = null;
    const flush = () => {
      if (low === null) return;
      places.push(low);
      if (high !== low) places.push(high);
      low = high = null;
    };
    for (let i = 0; i < x.length; ++i) {
      if (y[i] === null || y[i] === undefined || x[i] < this.from || x[i] > this.to) { flush(); places.push(null); continue; }
      if (this.options.log2 && y[i] <= 0) continue;
      const at = this.px(x[i]), height = Math.min(this.base, Math.max(this.roof, this.py(y[i])));
      if (step && i > 0 && y[i - 1] !== null) { flush(); places.push([Math.max(this.left, this.px(x[i - 1])), height]); }
      if (x.length > 2 * this.width && Math.floor(at) === pixel) {
        if (low === null || height > low[1]) low = [at, height];
        if (high === null || height < high[1]) high = [at, height];
        continue;
      }
      flush();
      pixel = Math.floor(at);
      low = high = [at, height];
    }
    flush();
    const parts = [[]];
    for (const place of places) {
      if (place === null) parts.push([]); else parts[parts.length - 1].push(place);
    }
    return parts.filter(part => part.length > 0);
  }

  lines() {
    const parts = [];
    for (const line of this.data.lines || []) {
      for (const part of this.outline(line.x, line.y, line.step)) {
        const points = part.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
        const kind = `line c${line.color % COLOURS}${line.dashed ? ' dashed' : ''}`;
        if (part.length === 1) {
          parts.push(shape('circle', {class: `point c${line.color % COLOURS}`, cx: part[0][0], cy: part[0][1], r: 2}));
        } else {
          parts.push(shape('polyline', {class: kind, 'data-name': line.name, points}));
        }
      }
    }
    return parts;
  }

  area(kind, x, low, high) {
    const upper = this.outline(x, high).flat(), lower = this.outline(x, low).flat().reverse();
    const points = [...upper, ...lower].map(([at, y]) => `${at.toFixed(1)},${y.toFixed(1)}`).join(' ');
    return shape('polygon', {class: kind, points});
  }

  ranges() {
    return (this.data.ranges || []).map(range => this.area(`range c${range.color}`, range.x, range.low, range.high));
  }

  stack() {
    return (this.data.stack || []).map(part => this.area(`stack c${part.color % COLOURS}`, part.x, part.bottom, part.top));
  }

  renderLegend() {
    const entries = [...this.series(), ...(this.data.ranges || [])];
    const shown = entries.length <= 16 ? entries : [];
    this.legend.replaceChildren(...shown.map(({name, color}) => {
      const mark = element('i', {class: `c${color % COLOURS}`});
      return element('span', {}, mark, name);
    }));
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = (event.clientX - box.left) * this.width / box.width;
    return {at, x: this.from + (at - this.left) / (this.right - this.left) * (this.to - this.from)};
  }

  hover(event) {
    if (this.from === undefined) return;
    const {at, x} = this.place(event);
    if (at < this.left || at > this.right) return this.leave();
    const rows = [];
    for (const series of this.series()) {
      if (!series.x.length) continue;
      // A step's value belongs to the stretch before its x.
      let i = indexAt(series.x, x);
      if (series.step && i + 1 < series.x.length && series.x[i] < x) ++i;
      if (series.y[i] !== null && series.y[i] !== undefined) rows.push([series, series.y[i]]);
    }
    rows.sort((a, b) => b[1] - a[1]);
    const shown = rows.slice(0, 12).map(([series, y]) => element('span', {},
        element('i', {class: `c${series.color % COLOURS}`}), `${series.name} ${short(y)}${this.options.unit || ''}`));
    if (rows.length > 12) shown.push(element('span', {}, `and ${rows.length - 12} more`));
    this.tip.replaceChildren(element('b', {}, short(x) + (this.options.xUnit ?? ' s')), ...shown);
    this.tip.hidden = rows.length === 0;
    this.tip.classList.toggle('right', at < this.width / 2);
    this.cross?.remove();
    this.cross = shape('line', {class: 'cross', x1: at, x2: at, y1: this.roof, y2: this.base});
    this.canvas.append(this.cross);
    if (this.dragged !== undefined && event.buttons) {
      const begin = Math.max(this.left, Math.min(this.px(this.dragged), at));
      this.canvas.append(this.chosen = (this.chosen?.remove(), shape('rect', {class: 'chosen', x: begin, y: this.roof,
        width: Math.abs(this.px(this.dragged) - at), height: this.base - this.roof})));
    }
  }

  leave() {
    this.tip.hidden = true;
    this.cross?.remove();
  }

  release(event) {
    this.chosen?.remove();
    const {x} = this.place(event);
    const zoom = [this.dragged, x].sort((a, b) => a - b);
    const wide = this.dragged !== undefined && Math.abs(this.px(zoom[1]) - this.px(zoom[0])) > 8;
    this.dragged = undefined;
    if (wide) this.view.setZoom(zoom);
  }
}

// Many workers over time: one row per worker, a colour for its value against the mean.
class HeatMap {
  constructor(view, title) {
    this.canvas = element('canvas', {role: 'img', 'aria-label': title});
    const key = element('p', {class: 'legend'}, 'one row per worker; blue: below the mean, red: above, up to 4 times');
    this.figure = element('figure', {class: 'heat'}, element('figcaption', {}, title), this.canvas, key);
    this.view = view;
    view.charts.add(this);
    view.resized.observe(this.figure);
  }
  draw(data) {  // {x, rows: [[value per worker] per x]}
    this.data = data;
    this.view.redraw();
  }
  render() {
    if (!this.data) return;
    const {x, rows} = this.data, workers = Math.max(...rows.map(row => row.length), 1);
    const width = this.canvas.clientWidth || 700, height = Math.min(320, Math.max(96, workers));
    const [from, to] = this.view.zoom || [0, x[x.length - 1] || 1];
    Object.assign(this.canvas, {width, height});
    const paint = this.canvas.getContext('2d');
    for (let i = 0; i < x.length; ++i) {
      const begin = ((i > 0 ? x[i - 1] : 0) - from) / (to - from) * width, end = (x[i] - from) / (to - from) * width;
      if (end < 0 || begin > width) continue;
      const known = rows[i].filter(value => value > 0);
      const mean = known.reduce((sum, value) => sum + value, 0) / Math.max(1, known.length);
      rows[i].forEach((value, worker) => {
        if (!(value > 0)) return;
        const far = Math.max(-1, Math.min(1, Math.log2(value / mean) / 2));
        paint.fillStyle = `hsl(${far < 0 ? 220 : 10} 80% 50% / ${0.12 + 0.88 * Math.abs(far)})`;
        const y = worker * height / workers;
        paint.fillRect(begin, y, Math.max(1, end - begin + 0.5), Math.max(1, height / workers));
      });
    }
  }
}
