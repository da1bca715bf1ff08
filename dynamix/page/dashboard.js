// The dashboard: the jobs of a server, one of them in full, as it runs. Points come as server-sent
// events, each with its number, so that a reader who was away goes on where it was.
'use strict';

class Dashboard {
  constructor() {
    this.jobs = document.getElementById('jobs');
    this.place = document.getElementById('job');
    this.state = document.getElementById('state');
    this.pause = document.getElementById('pause');
    this.chosen = decodeURIComponent(location.hash.slice(1));
    this.paused = false;
    this.pause.addEventListener('click', () => this.setPaused(!this.paused));
    this.other = document.getElementById('other');
    this.other.addEventListener('change', () => this.compareWith(this.other.value));
    window.addEventListener('hashchange', () => this.choose(decodeURIComponent(location.hash.slice(1))));
    this.listJobs();
    setInterval(() => this.listJobs(), 2000);
  }

  async listJobs() {
    let jobs = null;
    try {
      jobs = await (await fetch('jobs', {cache: 'no-store'})).json();
    } catch {
      return this.say('no answer: trying again');
    }
    const rows = jobs.map(job => {
      const link = element('a', {href: `#${encodeURIComponent(job.job)}`}, job.job);
      const cells = [link, job.policy, job.workers, job.rounds, `${short(job.seconds)} s`, short(job.global_batch), short(job.accuracy), job.late];
      return element('tr', job.job === this.chosen ? {class: 'chosen-job'} : {}, ...cells.map(cell => element('td', {}, cell instanceof Node ? cell : String(cell ?? '-'))));
    });
    this.jobs.replaceChildren(...rows);
    document.getElementById('none').hidden = jobs.length > 0;
    this.listOthers(jobs.map(job => job.job).filter(job => job !== this.shown));
    if (!this.chosen && jobs.length) this.choose(jobs[0].job);
  }

  // Changed only when the names are: an open list would close.
  listOthers(names) {
    if (names.join() === this.others?.join()) return;
    this.others = names;
    const chosen = this.other.value;
    this.other.replaceChildren(element('option', {value: ''}, 'nothing'), ...names.map(name => element('option', {value: name}, name)));
    this.other.value = names.includes(chosen) ? chosen : '';
  }

  // Another job of this server, as it is now, behind the chosen one.
  async compareWith(job) {
    const {run} = this;
    run.ghostPoints = job ? await (await fetch(`points?job=${encodeURIComponent(job)}`, {cache: 'no-store'})).json() : [];
    run.ghostName = job;
    this.draw();
  }

  choose(job) {
    if (!job || job === this.shown) return;
    this.chosen = this.shown = job;
    if (location.hash.slice(1) !== encodeURIComponent(job)) history.replaceState(null, '', `#${encodeURIComponent(job)}`);
    this.reset();
    this.connect();
  }

  connect() {
    this.events?.close();
    const events = this.events = new EventSource(`events?job=${encodeURIComponent(this.shown)}`);
    this.events.addEventListener('config', event => this.setConfig(JSON.parse(event.data)));
    this.events.addEventListener('ghost', event => { Object.assign(this.run, {ghostPoints: JSON.parse(event.data), ghostName: 'earlier run'}); this.draw(); });
    this.events.addEventListener('point', event => this.addPoint(JSON.parse(event.data)));
    this.events.addEventListener('open', () => this.say('live'));
    this.events.addEventListener('error', () => {
      this.say('no connection: trying again');
      // A server that started anew does not know the job yet; the browser gives up, this page does not.
      if (events.readyState === EventSource.CLOSED) setTimeout(() => { if (this.events === events) this.connect(); }, 1000);
    });
  }

  reset() {
    this.run = {name: this.shown, config: null, points: [], ghostPoints: []};
    this.view = this.quality = null;
    this.other.value = '';
    this.place.replaceChildren();
  }

  setConfig(config) {
    // A server that started anew tells of its points from the first.
    if (this.run.config && this.run.config.epoch !== config.epoch) this.reset();
    this.run.config = config;
  }

  addPoint(point) {
    const {points} = this.run;
    if (points.length && point.round <= points[points.length - 1].round && point.t <= points[points.length - 1].t) return;
    points.push(point);
    this.draw();
  }

  draw() {
    if (this.paused || this.waiting || !this.run.config || !this.run.points.length) return;
    this.waiting = true;
    setTimeout(() => {
      this.waiting = false;
      if (!this.paused) this.drawNow();
    }, 100);
  }

  drawNow() {
    const {run} = this;
    if (!run.config || !run.points.length) return;
    if (!this.view) {
      this.view = new RunView(run, {live: true});
      this.quality = new QualityChart(this.view.view, run.config.target.by_loss);
      this.members = element('p', {class: 'lead'});
      this.title = element('h2');
      this.place.replaceChildren(this.title, this.members, this.quality.figures, this.view.root);
    }
    this.title.textContent = `${run.name}: ${run.config.policy}`;
    const last = run.points[run.points.length - 1];
    const away = last.batches.filter(batch => batch === 0).length;
    const guarded = run.points.filter(point => point.guard).length;
    this.members.textContent = `${last.batches.length - away} workers` + (away ? `, ${away} away` : '') +
        (last.late ? `, ${last.late} late in the last round` : '') + `; global batch ${sum(last.batches)}` +
        `; guard: ${last.guard ? 'falls back' : guarded ? `stepped in in ${guarded} rounds` : 'content'}; round ${last.round}`;
    const shown = [{...run, color: 0}];
    if (run.ghostPoints.length) shown.push({name: run.ghostName, ghost: true, color: 7, config: run.config, points: run.ghostPoints});
    this.quality.draw(shown);
    this.view.draw();
  }

  setPaused(paused) {
    this.paused = paused;
    this.pause.textContent = paused ? 'go on' : 'pause';
    if (!paused) this.draw();
  }

  say(text) {
    this.state.textContent = text;
    this.state.className = text === 'live' ? 'good' : 'bad';
  }
}

window.dashboard = new Dashboard();
