// The places on the page that others link to.

export function typeHref(type) {
  return `#/types/${encodeURIComponent(type)}`;
}

export function watcherHref(id) {
  return `#/watchers/${encodeURIComponent(id)}`;
}

// Returns the place that has more about a finding of the server.
export function findingHref({ about: { type, section } }) {
  return type == null ? `#${section}` : typeHref(type);
}
