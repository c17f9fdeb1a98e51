// The tip: one box that says what the figure means that is pointed at or has the focus.

const DELAY_MS = 350;
const GAP_PX = 6;
const EDGE_PX = 8;

// Lets the tip follow pointer and focus. Escape hides it.
export function followPointerAndFocus() {
  const tip = document.getElementById('tip');
  let timer = 0;
  let shownFor = null;

  function hide() {
    clearTimeout(timer);
    shownFor = null;
    tip.hidden = true;
  }

  function show(target) {
    const description = document.getElementById(target.getAttribute('aria-describedby'));
    if (!description || !target.isConnected) return hide();
    shownFor = target;
    const isCut = target.scrollWidth > target.clientWidth;
    tip.replaceChildren();
    if (isCut) {
      const whole = document.createElement('strong');
      whole.textContent = target.textContent;
      tip.append(whole);
    }
    tip.append(description.textContent);
    tip.hidden = false;
    place(tip, target.getBoundingClientRect());
  }

  function schedule(target, delay) {
    clearTimeout(timer);
    if (target === shownFor) return;
    timer = setTimeout(show, tip.hidden ? delay : delay / 3, target);
  }

  document.addEventListener('pointerover', ({ target, pointerType }) => {
    if (tip.contains(target)) return clearTimeout(timer);
    const described = target.closest?.('[aria-describedby]');
    if (described) schedule(described, pointerType === 'mouse' ? DELAY_MS : 0);
    else if (shownFor && !shownFor.contains(document.activeElement)) hide();
  });
  document.addEventListener('focusin', ({ target }) => {
    const described = target.closest('[aria-describedby]');
    if (described && target.matches(':focus-visible')) show(described);
    else hide();
  });
  document.addEventListener('focusout', hide);
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') hide();
  });
  // What has the focus keeps its tip: to come to it may have scrolled the page.
  document.addEventListener('scroll', () => {
    if (!shownFor?.contains(document.activeElement)) hide();
    else place(tip, shownFor.getBoundingClientRect());
  }, { passive: true });
}

// Puts the tip below what it is about, or above it where there is no room.
function place(tip, target) {
  const { offsetWidth: width, offsetHeight: height } = tip;
  const below = target.bottom + GAP_PX;
  const top = below + height > innerHeight - EDGE_PX ? Math.max(EDGE_PX, target.top - GAP_PX - height) : below;
  const right = document.documentElement.clientWidth - width - EDGE_PX;
  tip.style.top = `${top}px`;
  tip.style.left = `${Math.max(EDGE_PX, Math.min(target.left, right))}px`;
}
