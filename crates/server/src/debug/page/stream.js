// The connection to the server: a stream of states, and what is done when it is lost or refused.

// A state comes each second. After so long without one, figures are called old.
const SILENT_MS = 3_500;
// Waits before another try: each twice the last, up to the most.
const WAIT_MS = 1_000;
const WAIT_MS_MAX = 15_000;
const ANSWER_MS_MAX = 5_000;

// Returns the address of something beside this script, so that the page works behind any prefix.
export function address(relative) {
  return new URL(relative, import.meta.url);
}

// Asks for a document once. It throws an error with the status of a refusal.
export async function ask(relative) {
  const answer = await fetch(address(relative), { signal: AbortSignal.timeout(ANSWER_MS_MAX), headers: { Accept: 'application/json' } });
  if (!answer.ok) throw Object.assign(new Error(`${answer.status} ${answer.statusText}`), { status: answer.status });
  return answer.json();
}

// Follows the server. `onState` gets each state, `onLink` how things stand: {kind: waiting | live | silent | lost, why,
// heard, next}, with times of `performance.now()`.
export class Stream {
  constructor(onState, onLink) {
    Object.assign(this, { onState, onLink, heard: null, wait: WAIT_MS });
    this.open();
    addEventListener('online', () => this.retry());
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = new EventSource(address('stream'));
    this.source.addEventListener('state', ({ data }) => this.take(JSON.parse(data), 'live'));
    this.source.addEventListener('error', () => this.fail());
    this.watch();
  }

  take(state, kind, why) {
    this.heard = performance.now();
    if (kind === 'live') this.wait = WAIT_MS;
    this.onState(state);
    this.onLink({ kind, why, heard: this.heard, next: this.next });
    this.watch();
  }

  // Tells when nothing comes although the connection stands.
  watch() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      if (this.source.readyState === EventSource.OPEN) this.onLink({ kind: 'silent', heard: this.heard });
      this.watch();
    }, SILENT_MS);
  }

  // Tries again later. A stream that is refused may have a state to read: there are only so many streams.
  async fail() {
    this.source.close();
    const source = this.source;
    this.next = performance.now() + this.wait;
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(WAIT_MS_MAX, this.wait * 2);
    this.onLink({ kind: 'lost', why: 'The stream has ended.', heard: this.heard, next: this.next });
    try {
      const state = await ask('state');
      if (this.source !== source) return;
      this.take(state, 'lost', 'The server answers, but gives no stream: it may have as many as it allows.');
    } catch (error) {
      if (this.source !== source) return;
      this.onLink({ kind: 'lost', why: reason(error), heard: this.heard, next: this.next });
    }
  }

  retry() {
    this.wait = WAIT_MS;
    this.open();
  }
}

function reason({ status }) {
  if (status === 401) return 'The server does not know who you are (401).';
  if (status === 403) return 'You may not read /debug/ui (403): ask for get on that nonResourceURL.';
  if (status) return `The server refuses (${status}).`;
  return 'The server does not answer.';
}
