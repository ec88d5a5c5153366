// Filtering, linked lines and printing. Without scripts the page shows all findings, and its links work.
'use strict';

const form = document.getElementById('filter');
const fields = ['rule', 'kernel', 'severity', 'text', 'suppressed'];
const findings = [...document.querySelectorAll('.finding')];
const form_defaults = {rule: '', kernel: '', severity: '0', text: '', suppressed: true};

function value_of(name) {
  const field = form.elements[name];
  return field.type === 'checkbox' ? field.checked : field.value;
}

function filter() {
  const text = value_of('text').toLowerCase();
  let shown = 0;
  for (const finding of findings) {
    const data = finding.dataset;
    const wanted = (!value_of('rule') || data.rule === value_of('rule')) &&
        (!value_of('kernel') || data.kernel === value_of('kernel')) &&
        Number(data.severity) >= Number(value_of('severity')) &&
        (value_of('suppressed') || !finding.classList.contains('suppressed')) &&
        finding.textContent.toLowerCase().includes(text);
    finding.hidden = !wanted;
    shown += wanted;
  }
  // While a filter is set, hide kernels without a matching finding.
  const narrowed = value_of('rule') !== '' || text !== '' || value_of('severity') !== '0';
  for (const part of document.querySelectorAll('section[data-kernel], .overview tr[data-kernel]')) {
    part.hidden = value_of('kernel') !== '' && part.dataset.kernel !== value_of('kernel') ||
        narrowed && part.tagName === 'SECTION' && !part.querySelector('.finding:not([hidden])');
  }
  const all = findings.length + (findings.length === 1 ? ' finding' : ' findings');
  form.querySelector('output').value = shown === findings.length ? all : shown + ' of ' + all;
}

// The address holds the filter, so that users can send links to it: #filter&rule=F051&severity=3
function remember() {
  const words = new URLSearchParams();
  for (const name of fields) {
    if (value_of(name) !== form_defaults[name]) words.set(name, value_of(name));
  }
  history.replaceState(null, '', words.size ? '#filter&' + words : location.pathname + location.search);
}

function recall() {
  if (!location.hash.startsWith('#filter')) return;
  const words = new URLSearchParams(location.hash.slice('#filter'.length));
  for (const name of fields) {
    const field = form.elements[name];
    const word = words.get(name) ?? form_defaults[name];
    if (field.type === 'checkbox') field.checked = String(word) === 'true';
    else field.value = word;
  }
}

// Highlights the clicked row and its counterparts in the other panel.
function light(row) {
  const panels = row.closest('.panels');
  for (const lit of panels.querySelectorAll('.lit')) lit.classList.remove('lit');
  const partners = panels.querySelectorAll('[data-source="' + row.dataset.source + '"]');
  for (const partner of partners) partner.classList.add('lit');
  const own = row.closest('.lines');
  const other = [...partners].find(partner => partner.closest('.lines') !== own);
  if (other) {
    const box = other.closest('.lines');
    box.scrollTop += other.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  }
}

form.addEventListener('input', () => { filter(); remember(); });
form.addEventListener('submit', event => event.preventDefault());
window.addEventListener('hashchange', () => { recall(); filter(); });
document.addEventListener('click', event => {
  const row = event.target.closest('.lines [data-source]');
  if (!row) return;
  event.preventDefault();
  light(row);
});
window.addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
recall();
filter();
