// Builds elements. Text is always text: nothing here reads HTML, and styles are set one property at a time, as the
// page's security policy asks.

// Returns a new element with attributes (those that are null are left out) and children.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Returns a new element of a drawing.
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Sets the text of an element, if it is another one: what stays the same costs no layout.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Sets or takes away an attribute, if that changes anything.
export function mark(element, name, value) {
  if (value == null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
