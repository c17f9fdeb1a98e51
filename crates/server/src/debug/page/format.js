// Figures as people read them, each with its unit behind a space that does not break.

export const UNKNOWN = '–';
const SPACE = '\u00a0';
const GROUPED = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Returns a number with three digits that count.
function three(number) {
  if (number >= 100 || Number.isInteger(number)) return GROUPED.format(number);
  return number.toFixed(number >= 10 ? 1 : 2);
}

export function count(number) {
  if (number == null) return UNKNOWN;
  return number < 1e8 ? GROUPED.format(number) : `${three(number / 1e6)}${SPACE}M`;
}

// Revisions are names as much as numbers: their digits are not grouped, so that they can be searched for.
export function revision(number) {
  return number == null ? UNKNOWN : String(number);
}

export function bytes(number) {
  if (number == null) return UNKNOWN;
  let power = 0;
  while (number >= 1024 && power < BYTES.length - 1) {
    number /= 1024;
    power += 1;
  }
  return `${three(number)}${SPACE}${BYTES[power]}`;
}

export function rate(number) {
  if (number == null) return UNKNOWN;
  const digits = number < 0.005 || number >= 99.95 ? 0 : number < 0.995 ? 2 : 1;
  return `${digits ? number.toFixed(digits) : GROUPED.format(number)}${SPACE}/s`;
}

export function percent(part) {
  return part == null || !Number.isFinite(part) ? UNKNOWN : `${(part * 100).toFixed(part < 0.1 ? 1 : 0)}${SPACE}%`;
}

export function seconds(number) {
  if (number == null) return UNKNOWN;
  if (number === 0) return `0${SPACE}s`;
  if (number < 0.9995) return `${number < 0.001 ? '<1' : Math.round(number * 1000)}${SPACE}ms`;
  if (number < 10) return `${number.toFixed(1)}${SPACE}s`;
  const whole = Math.round(number);
  if (whole < MINUTE) return `${whole}${SPACE}s`;
  if (whole < HOUR) return two(whole, MINUTE, 'm', 1, 's');
  if (whole < DAY) return two(whole, HOUR, 'h', MINUTE, 'm');
  return two(whole, DAY, 'd', HOUR, 'h');
}

function two(whole, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)}${SPACE}${largeUnit}${SPACE}${String(rest).padStart(2, '0')}${SPACE}${smallUnit}`;
}

// Returns the short name of a client: the first word of its user agent, or else its user.
export function client({ userAgent, user }) {
  return userAgent ? userAgent.split(' ')[0] : user || 'a client without a name';
}

// Returns a number of things in words: "1 watcher", "2 watchers".
export function things(number, one, many = `${one}s`) {
  return `${count(number)}${SPACE}${number === 1 ? one : many}`;
}
