// What makes the page usable for everybody: contrast after WCAG 2.2 AA, and names of controls.
// An expression whose value is the list of problems.
(() => {
  const problems = [];
  const say = (problem, element) => problems.push(`${problem}: ${element.outerHTML.slice(0, 120)}`);
  const isShown = element => element.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const rgba = text => {
    const found = text.match(/[\d.]+/g).map(Number);
    return found.length === 4 ? found : [...found, 1];
  };
  const over = ([r, g, b, a], [r2, g2, b2]) => [r * a + r2 * (1 - a), g * a + g2 * (1 - a), b * a + b2 * (1 - a), 1];
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const luminance = color => {
    const [r, g, b] = color.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + .05) / (dark + .05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !isShown(element)) continue;
    if (element.closest('noscript, option, :disabled')) continue;
    const style = getComputedStyle(element);
    const below = ground(element), size = parseFloat(style.fontSize), isBold = Number(style.fontWeight) >= 700;
    const ink = over(rgba(element.closest('svg') ? style.fill : style.color), below);
    const least = size >= 24 || (size >= 18.66 && isBold) ? 3 : 4.5;
    const found = contrast(ink, below);
    if (found < least) say(`contrast ${found.toFixed(2)} below ${least}`, element);
  }
  const controls = 'input, select, textarea, button, a, progress, [role=img], [tabindex="0"]';
  for (const element of document.querySelectorAll(controls)) {
    if (!isShown(element)) continue;
    const name = element.ariaLabel || element.textContent.trim() || element.labels?.[0]?.textContent.trim()
      || element.title;
    if (!name) say('a control without a name', element);
  }
  for (const element of document.querySelectorAll('input, select')) {
    if (isShown(element) && !element.labels?.length && !element.ariaLabel) say('a field without a label', element);
  }
  const ids = [...document.querySelectorAll('[id]')].map(element => element.id);
  if (new Set(ids).size !== ids.length) problems.push('an id is used twice');
  if (!document.documentElement.lang) problems.push('the language is missing');
  if (document.querySelectorAll('h1').length !== 1) problems.push('not exactly one h1');
  if (document.querySelector('[style]:not(.tip)')) say('an inline style', document.querySelector('[style]:not(.tip)'));
  return problems.slice(0, 8).join('\n');
})()
