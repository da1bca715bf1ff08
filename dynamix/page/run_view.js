// One run or job as charts, from its points (page/points.h). Used by the page and the dashboard.
'use strict';

const MANY = 16;  // workers from which on lines become ranges

const sum = values => values.reduce((all, value) => all + (value ?? 0), 0);

function quantile(sorted, share) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : null;
}

// Lines of a value per worker; from MANY workers on their median, and ranges around it.
function perWorker(points, key, step) {
  const x = points.map(point => point.t);
  const workers = Math.max(...points.map(point => point[key].length), 0);
  if (workers <= MANY) {
    return {lines: Array.from({length: workers}, (_, w) => ({
      name: `worker ${w}`, color: w, step, x, y: points.map(point => point[key][w] ?? null),
    }))};
  }
  const sorted = points.map(point => point[key].filter(value => value !== null).sort((a, b) => a - b));
  const at = share => sorted.map(values => quantile(values, share));
  return {
    lines: [{name: 'median worker', color: 0, x, y: at(0.5), step}],
    ranges: [{name: 'all workers', color: 7, x, low: at(0), high: at(1)},
             {name: 'middle half', color: 0, x, low: at(0.25), high: at(0.75)}],
  };
}

// Areas of named values on top of each other.
function stacked(x, parts) {
  let bottom = x.map(() => 0);
  return parts.map(({name, color, y}) => {
    const top = bottom.map((value, i) => value + (y[i] ?? 0));
    const part = {name, color, x, y, bottom, top};
    bottom = top;
    return part;
  });
}

const mean = values => {
  const known = values.filter(value => value !== null && value !== undefined);
  return known.length ? sum(known) / known.length : null;
};

const measured = (points, key) =>
  points.some(point => Array.isArray(point[key]) ? point[key].some(value => value !== null) : point[key] != null);

// Accuracy, or loss when that is the target. What matters happens near the end: the first steep part
// of a run with a target is cut off.
function qualityData(runs, bySamples) {
  const {target} = runs[0].config;
  const key = target.by_loss ? 'loss' : 'accuracy';
  const lines = runs.filter(run => run.points.length).map((run, i) => {
    let samples = 0;
    const x = run.points.map(point => bySamples ? (samples += point.samples) : point.t);
    return {name: run.name, color: run.color ?? i, dashed: run.ghost, x, y: run.points.map(point => point[key])};
  });
  const values = lines.flatMap(line => line.y).filter(value => value !== null);
  if (!values.length) return null;
  const best = target.by_loss ? Math.min(...values) : Math.max(...values);
  const data = {lines, bands: bySamples ? [] : runs[0].config.events.map(event => ({...event, label: ''}))};
  if (target.value > 0) {
    data.mark = {y: target.value, name: `target ${short(target.value)}`};
    if (values.length > 5) data[target.by_loss ? 'high' : 'low'] = (target.by_loss ? 2 : 0.75) * best;
  }
  return data;
}

class QualityChart {
  constructor(view, byLoss) {
    this.bySamples = false;
    const what = byLoss ? 'loss' : 'accuracy';
    this.overTime = new Chart(view, `Held-out ${what} over time`);
    this.overSamples = new Chart(new View(), `Held-out ${what} over samples`, {xUnit: ''});
    this.figures = element('div', {class: 'pair'}, this.overTime.figure, this.overSamples.figure);
  }
  // Of a job that nobody evaluates there is nothing to show.
  draw(runs) {
    const data = qualityData(runs, false);
    this.figures.hidden = data === null;
    if (data === null) return;
    this.overTime.draw(data);
    this.overSamples.draw(qualityData(runs, true));
  }
}

// Where an iteration's time went, per worker: bars of the mean over the points.
function timeBars(points) {
  const workers = Math.max(...points.map(point => point.compute.length), 0);
  const rows = Array.from({length: workers}, (_, w) => ['compute', 'wait', 'communication'].map(
      key => mean(points.map(point => point[key][w] ?? null)) ?? 0));
  const order = rows.map((_, w) => w);
  if (workers > MANY) order.sort((a, b) => rows[b][0] - rows[a][0]).splice(MANY);
  const longest = Math.max(...order.map(w => sum(rows[w])), 1e-9);
  const bars = element('div', {class: 'bars'});
  for (const w of order) {
    const bar = element('div', {class: 'bar'});
    rows[w].forEach((ms, part) => {
      const piece = element('i', {class: ['c0', 'c3', 'c4'][part], title: `${['compute', 'wait', 'communication'][part]} ${short(ms)} ms`});
      piece.style.width = `${(100 * ms / longest).toFixed(2)}%`;
      bar.append(piece);
    });
    bars.append(element('span', {}, `worker ${w}`), bar, element('span', {}, `${short(sum(rows[w]))} ms`));
  }
  const legend = element('p', {class: 'legend'});
  for (const [kind, name] of [['c0', 'compute'], ['c3', 'wait for the slowest'], ['c4', 'communication']]) {
    legend.append(element('span', {}, element('i', {class: kind}), name));
  }
  const title = 'Where an iteration\u2019s time went' + (workers > MANY ? `: the ${MANY} slowest of ${workers} workers` : '');
  return element('figure', {}, element('figcaption', {}, title), bars, legend);
}

const batchesText = batches => batches.length > 16 ? `sum ${sum(batches)}` : batches.join(' ');

// The rounds that changed a batch, the last first when `newestFirst`.
function decisionTable(run, newestFirst, most) {
  const changes = run.points.filter(point => point.batches.some((batch, w) => batch > 0 && w < point.sizes.length && point.sizes[w] !== batch));
  const shown = newestFirst ? changes.slice(-most).reverse() : changes.slice(0, most);
  if (!changes.length) return element('p', {class: 'lead'}, 'No decision changed a batch.');
  const body = element('tbody');
  for (const point of shown) {
    const why = element('td', {class: 'text why'});
    point.why.forEach(({name, value, influence}, i) => {
      const sign = influence > 0 ? '+' : '';
      why.append(i ? ', ' : '', element('b', {}, name), value === undefined ? '' : ` ${short(value)}`, influence === undefined ? '' : ` (${sign}${influence.toFixed(2)})`);
    });
    body.append(element('tr', {}, element('td', {}, `${short(point.t)} s`), element('td', {}, point.action),
        element('td', {class: 'text'}, `${batchesText(point.batches)} \u2192 ${batchesText(point.sizes)}`), why));
  }
  const head = element('tr', {}, element('th', {}, 'at'), element('th', {}, 'action'), element('th', {class: 'text'}, 'batches'),
      element('th', {class: 'text'}, run.config.why_title));
  const lead = `${changes.length} of ${run.points.length} rounds changed a batch` +
      `${shown.length < changes.length ? ` (${shown.length} shown)` : ''}. ${run.config.why_text}`;
  return element('div', {}, element('p', {class: 'lead'}, lead),
      element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, head), body)));
}

// All charts of one run. draw() again when it has more points.
class RunView {
  constructor(run, {live = false} = {}) {
    this.run = run;
    this.live = live;
    this.view = new View();
    this.box = element('div', {class: 'charts'});
    this.made = new Map();
    this.tables = element('div');
    this.bars = element('div');
    this.whole = element('button', {type: 'button', hidden: ''}, 'show the whole time');
    this.whole.addEventListener('click', () => this.view.setZoom(null));
    this.root = element('div', {}, this.whole, this.box, this.bars, this.tables);
    const setZoom = this.view.setZoom.bind(this.view);
    this.view.setZoom = zoom => { setZoom(zoom); this.whole.hidden = zoom === null; };
  }

  chart(title, options, data, kind = Chart) {
    if (!this.made.has(title)) {
      this.made.set(title, new kind(this.view, title, options));
      this.box.append(this.made.get(title).figure);
    }
    this.made.get(title).draw(data);
  }

  draw() {
    const {run} = this, {points} = run;
    if (!points.length) return;
    const x = points.map(point => point.t), bands = run.config.events;
    const line = (name, color, value) => ({name, color, x, y: points.map(value)});
    const ghost = run.ghostPoints || [];
    this.chart('Each worker\u2019s batch', {log2: true}, {...perWorker(points, 'batches', true), bands});
    const workers = Math.max(...points.map(point => point.batches.length));
    if (workers <= MANY) {
      const parts = Array.from({length: workers}, (_, w) => ({name: `worker ${w}`, color: w, y: points.map(point => point.batches[w])}));
      this.chart('Global batch by worker', {zero: true}, {stack: stacked(x, parts)});
    } else {
      this.chart('Batches of all workers', {}, {x, rows: points.map(point => point.batches)}, HeatMap);
    }
    const global = [line('global batch', 2, point => sum(point.batches))];
    if (measured(points, 'noise')) global.unshift(line('gradient noise scale', 4, point => point.noise));
    if (ghost.length) global.push({name: `global batch of ${run.ghostName}`, color: 7, dashed: true, x: ghost.map(point => point.t), y: ghost.map(point => sum(point.batches))});
    this.chart('Noise scale and global batch', {log2: true}, {lines: global});
    const times = ['compute', 'wait', 'communication'].map((key, i) =>
      ({name: key, color: [0, 3, 4][i], y: points.map(point => mean(point[key]))}));
    this.chart('Iteration time, mean over workers', {zero: true, unit: ' ms'}, {stack: stacked(x, times), bands});
    this.chart('Samples per second', {zero: true}, {lines: [line('samples/s', 5, point => point.dt > 0 ? point.samples / point.dt : null)], bands});
    if (measured(points, 'train_loss')) this.chart('Training loss', {}, {lines: [line('training loss', 1, point => point.train_loss)]});
    if (measured(points, 'train_accuracy')) this.chart('Training accuracy', {}, {lines: [line('training accuracy', 0, point => point.train_accuracy)]});
    if (measured(points, 'learning_rate')) this.chart('Learning rate', {zero: true}, {lines: [line('learning rate', 6, point => point.learning_rate)]});
    for (const [key, title, unit] of [['rtt_ms', 'Round-trip time', ' ms'], ['retransmitted', 'Retransmitted segments', ' %'],
                                      ['cpu', 'CPU use', ' %'], ['sent_mbps', 'Sent', ' Mbit/s']]) {
      if (measured(points, key)) this.chart(title, {zero: true, unit}, {...perWorker(points, key), bands});
    }
    this.bars.replaceChildren(timeBars(this.live ? points.slice(-20) : points));
    this.tables.replaceChildren(decisionTable(run, this.live, this.live ? 50 : 200));
  }
}
