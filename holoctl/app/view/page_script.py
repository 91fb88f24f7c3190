"""What viser's page does not do itself: a style sheet and a small script, in both kinds of pages.

Numbers and names are not clipped, and on a phone the panel stands below the picture and not over
it. A press on a chart, and the keys left, right, home and end, move the time; space plays and
pauses. The script writes into the field of the time, as a user would: viser's keys for commands
would also rotate the camera. In a saved page it also moves the cursor of the charts, and stops at
the end unless "loop" is ticked; viser's player always starts again.
"""

from __future__ import annotations

from html import escape

__all__ = ["LEFT", "RIGHT", "WIDTH", "in_page", "saved"]

WIDTH, LEFT, RIGHT = 320, 44, 8
"""Where the curves of a chart end and begin, in its own units, and the width to the right."""

PHONE = "36em"
"""Width of viser's own layout for phones."""

STYLE = f"""
.mantine-Slider-root + .mantine-NumberInput-root {{ width: 5rem !important; flex-shrink: 0; }}
label {{ letter-spacing: 0; }}
#holoctl-chart svg {{ cursor: ew-resize; touch-action: none; user-select: none; }}
[data-mantine-color-scheme=dark] :is(#holoctl-chart, #holoctl-pose, #holoctl-singular) {{
  filter: brightness(1.5); }}
.holoctl-cursor {{ visibility: var(--holoctl-cursor, visible);
  transform: translateX(calc(var(--holoctl-share, 0) * {WIDTH - LEFT}px)); }}
"""

ON_A_PHONE = f"""
@media (max-width: {PHONE}) {{
  .mantine-Paper-root:has(#holoctl-page) {{
    width: 100% !important; max-height: 50dvh !important; }}
  .mantine-Paper-root:has(#holoctl-page) [style*="20em"] {{ width: 100% !important; }}
  div:has(+ .mantine-Paper-root #holoctl-page) {{ height: 50dvh !important; }}
}}
"""

SCRIPT = """
(() => {
  if (window.holoctl) return;
  window.holoctl = true;
  const saved = document.getElementById('holoctl-panel');
  const chart = () => document.getElementById('holoctl-chart');
  const field = () => {
    if (saved) return document.querySelector('#root .mantine-NumberInput-input');
    const name = [...document.querySelectorAll('label')].find(x => x.textContent === 't (s)');
    const slider = name && document.getElementById(name.htmlFor);
    return slider && slider.parentElement.querySelector('.mantine-NumberInput-input');
  };
  const slider = () => saved ? document.querySelector('#root [role=slider]')
    : field() && field().closest('.mantine-Flex-root').querySelector('[role=slider]');
  const now = () => slider() ? +slider().getAttribute('aria-valuenow') : 0;
  const number = name => +chart().dataset[name];
  let held = null, last = 0;
  const go = t => {
    const value = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
    const end = number('end') - (saved ? 1e-3 : 0.0);  // at its end, viser's player starts again
    t = Math.min(Math.max(t, number('start')), end);
    const into = field();
    into.focus = () => {};  // it would take the keys, and round the time when it loses them
    value.set.call(into, t.toFixed(4));
    into.dispatchEvent(new Event('input', {bubbles: true}));
  };
  const scrub = e => {
    const box = held.getBoundingClientRect();
    const share = ((e.clientX - box.left) / box.width * VIEW - LEFT) / (WIDTH - LEFT);
    go(number('start') + share * (number('end') - number('start')));
  };
  const play = () => {
    if (!saved) {
      const words = ['Play', 'Pause'];
      [...document.querySelectorAll('button')].find(x => words.includes(x.textContent)).click();
      return;
    }
    if (now() > number('end') - 0.05) { last = 0; go(0); }
    field().closest('.mantine-NumberInput-root').previousElementSibling.click();
  };
  window.addEventListener('pointerdown', e => {
    held = e.target.closest && e.target.closest('#holoctl-chart svg');
    if (held) scrub(e);
  });
  window.addEventListener('pointermove', e => held && scrub(e));
  window.addEventListener('pointerup', () => held = null);
  window.addEventListener('keydown', e => {
    if (!chart() || !field() || e.ctrlKey || e.altKey || e.metaKey) return;
    if (e.target.closest('input, textarea, select, [role=slider]')) return;
    const to = {
      ArrowLeft: () => go(now() - number('step')), ArrowRight: () => go(now() + number('step')),
      Home: () => go(number('start')), End: () => go(number('end')),
      ' ': play,
    }[e.key];
    if (!to) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    to();
  }, true);
  if (!saved || !chart()) return;
  const follow = () => {
    const t = now(), loop = document.getElementById('holoctl-loop');
    if (t < last - 0.5 * number('end') && last > 0.9 * number('end') && !loop.checked)
      go(number('end'));
    last = t;
    const share = Math.min(t / number('end'), 1);
    document.documentElement.style.setProperty('--holoctl-share', share);
    document.getElementById('holoctl-time').textContent =
      't = ' + (number('first') + t).toFixed(2) + ' s';
    requestAnimationFrame(follow);
  };
  follow();
})();
""".replace("VIEW", str(WIDTH + RIGHT))
SCRIPT = SCRIPT.replace("WIDTH", str(WIDTH)).replace("LEFT", str(LEFT))


def in_page() -> str:
    """Style and script in the page of a server, whose only way in is the HTML of a panel."""
    script = escape(SCRIPT, quote=True)
    image = f'<img id="holoctl-page" src="data:," hidden alt="" onerror="{script}">'
    return f"<style>{STYLE}{ON_A_PHONE}</style>{image}"


def saved() -> str:
    """Style and script at the end of a saved page."""
    return f"<style>{STYLE}</style><script>{SCRIPT}</script>"
